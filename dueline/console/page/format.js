// Figures, spans and instants as text, with no line break between a figure and its unit, and typed text as values.
// An instant is ISO 8601 or milliseconds; `now` is in milliseconds.

const NUMBER = new Intl.NumberFormat("en");
// Swedish writes a date as "2027-01-04 09:00:00".
const stampIn = (timeZone) => new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium", timeZone });
const STAMP = stampIn();
/** The reader's own time zone. */
export const ZONE = STAMP.resolvedOptions().timeZone;
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export const number = (value) => NUMBER.format(value);

export const plural = (count, word, words = `${word}s`) => `${number(count)} ${count === 1 ? word : words}`;

/** A count that may have ended before the end: "1,000+". */
export const atLeast = (count, more) => `${number(count)}${more ? "+" : ""}`;

/** "6 ms", "1.4 s", "42 s", "3 min 5 s", "2 d 4 h": two units at most. */
export function span(seconds) {
  if (seconds > 0 && seconds < 0.9995) return `${Math.round(seconds * 1000) || 1}\u00a0ms`;
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

/** "2027-01-04 09:00:00 Europe/Berlin"; a zone that the browser does not know is left to `utc`. */
export function inZone(at, zone = ZONE) {
  try {
    return `${stampIn(zone).format(new Date(at))} ${zone}`;
  } catch {
    return utc(at);
  }
}

/** "2027-01-04 08:00:00 UTC". */
export const utc = (at) => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** A share of 0 to 1 as "99.95 %", rounded down: it is 100 % only when it is all. */
export function percent(share) {
  const floor = Math.floor(share * 10000 + 1e-6) / 100;
  return `${floor === 100 ? "100" : floor.toFixed(2)}\u00a0%`;
}

/** A span: its count and its unit. */
const SPAN = /^\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*$/;
const SECONDS = { "": 1, s: 1, m: 60, h: 3600, d: 86400 };

/** The seconds of "90", "15m", "2h", "3d". Throws an Error that says what is allowed. */
export function seconds(text) {
  const [, count, unit] = SPAN.exec(text) ?? [];
  if (!count) throw new Error(`delay is "${text}": it must be seconds, or a number with s, m, h or d, such as 15m`);
  return Number(count) * SECONDS[unit];
}

/** The instant, in UTC, of the text of a date and time field, in the reader's own time. Throws an Error. */
export function instant(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw new Error(`time is "${text}": it must be a date and a time`);
  return at.toISOString();
}

/** The text of a date and time field for an instant; empty for an invalid one, as an address may hold it. */
export function fieldText(at) {
  const shifted = new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60000);
  return Number.isNaN(shifted.getTime()) ? "" : shifted.toISOString().slice(0, 19);
}
