// Figures, spans and instants as text, where no line ends between a figure and its unit. An instant is ISO 8601 or
// milliseconds; `now` is in milliseconds.

const NUMBER = new Intl.NumberFormat("en");
// Swedish writes a date as "2027-01-04 09:00:00".
const STAMP = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium" });
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const RATE_UNITS = { s: "a second", m: "a minute", h: "an hour" };

export const number = (value) => NUMBER.format(value);

export const plural = (count, word, words = `${word}s`) => `${number(count)} ${count === 1 ? word : words}`;

/** A count that may have ended before the end: "1,000+". */
export const atLeast = (count, more) => `${number(count)}${more ? "+" : ""}`;

/** "0.4 s", "42 s", "3 min 5 s", "2 d 4 h": two units at most. */
export function span(seconds) {
  if (seconds > 0 && seconds < 9.95 && seconds % 1) return `${seconds.toFixed(1)}\u00a0s`;
  let left = Math.round(seconds);
  const first = UNITS.findIndex(([, size]) => left >= size);
  const parts = UNITS.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count ? `${number(count)}\u00a0${unit}` : "";
  });
  return first < 0 ? "0\u00a0s" : parts.filter(Boolean).join(" ");
}

/** "12 s ago", "in 3 min 5 s". */
export function relative(at, now) {
  const seconds = Math.round((new Date(at) - now) / 1000);
  if (!seconds) return "now";
  return seconds < 0 ? `${span(-seconds)} ago` : `in ${span(seconds)}`;
}

/** The reader's own time: "14:32:05" today, otherwise "2027-01-04 09:00:00". */
export function local(at, now) {
  const [day, time] = STAMP.format(new Date(at)).split(" ");
  return STAMP.format(now).startsWith(day) ? time : `${day} ${time}`;
}

/** "14:32": hours and minutes of the reader's own time. */
export const clock = (at) => STAMP.format(new Date(at)).slice(11, 16);

/** "2027-01-04 08:00:00 UTC". */
export const utc = (at) => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** A share of 0 to 1 as "99.95 %", rounded down: it is 100 % only when it is all. */
export function percent(share) {
  const floor = Math.floor(share * 10000 + 1e-6) / 100;
  return `${floor === 100 ? "100" : floor.toFixed(2)}\u00a0%`;
}

/** A rate such as "50/s" as "50 a second"; null as "no limit". */
export function rateWords(rate) {
  if (!rate) return "no limit";
  const [jobs, unit] = rate.split("/");
  return `${number(Number(jobs))} ${RATE_UNITS[unit]}`;
}
