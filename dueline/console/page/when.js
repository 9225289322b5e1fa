// Times as people type them: an instant of their own clock, or a span.

/** A span: its count and its unit. */
export const SPAN = /^\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*$/;
const SECONDS = { "": 1, s: 1, m: 60, h: 3600, d: 86400 };

/** The seconds of "90", "15m", "2h", "3d", as the command line takes them. Throws an Error that says what may be. */
export function seconds(text, name = "delay") {
  const [, count, unit] = SPAN.exec(text) ?? [];
  if (!count) throw new Error(`${name} is "${text}": it must be seconds, or a number with s, m, h or d, such as 15m`);
  return Number(count) * SECONDS[unit];
}

/** The instant, in UTC, of what a date and time field holds: the reader's own time. Throws an Error. */
export function instant(text, name = "time") {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw new Error(`${name} is "${text}": it must be a date and a time`);
  return at.toISOString();
}

/** What a date and time field shows of an instant: nothing of what is none, as an address may hold it. */
export function fieldText(at) {
  const shifted = new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60000);
  return Number.isNaN(shifted.getTime()) ? "" : shifted.toISOString().slice(0, 19);
}
