// What is due in a queue's next hours, and how its last hours were.

import { html } from "./vendor/preact-htm.js";
import { Chart } from "./chart.js";
import { clock, local, number, percent, plural, span } from "./format.js";
import { Failure, Loading } from "./parts.js";
import { navigate, queuePath } from "./route.js";

const HOUR = 3600;
const RECENT = 300;

/** How late a queue is, by its overview and by what CloudWatch has of it: lateness, on_time, overdue. */
export function lastHour({ data, at }, series) {
  const overdue = data.next_due ? Math.max(0, (at - Date.parse(data.next_due)) / 1000) : 0;
  const since = (points, seconds) => (points ?? []).filter(([when]) => when >= at / 1000 - seconds);
  const lateness = Math.max(overdue, ...since(series?.lateness, RECENT).map(([, value]) => value));
  return { lateness, overdue: overdue > 0, on_time: shareOf(since(series?.on_time, HOUR), since(series?.delayed, HOUR)) };
}

const total = (points) => points.reduce((sum, [, value]) => sum + value, 0);

function shareOf(onTime, delayed) {
  const all = total(onTime) + total(delayed);
  return all ? total(onTime) / all : null;
}

export function Coming({ name, polled, hours }) {
  const { data, error, at } = polled;
  if (!data) return html`<section><${Loading} error=${error} what="what is due" /></section>`;
  const step = hours > 6 ? 600 : 60;
  const points = grouped(data.minutes, step);
  const pick = (from) => navigate(`${queuePath(name, "jobs")}?${new URLSearchParams({ from: iso(from), to: iso(from + step) })}`);
  return html`<section class="view"><${Failure} error=${error} at=${at} what="what is due" />
    <${Chart} title=${`Due in the next ${plural(hours, "hour")}`} summary=${comingWords(data, points, step)} bars gap=${0} unit="jobs" onPick=${pick}
      ...${{ points, step, format: number, from: data.from, to: data.to, until: data.more ? data.until : undefined }} /></section>`;
}

const iso = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");

export function grouped(points, step) {
  const sums = new Map();
  for (const [at, count] of points) {
    const from = at - (at % step);
    sums.set(from, (sums.get(from) ?? 0) + count);
  }
  return [...sums];
}

const stepWords = (step) => (step === 60 ? "a minute" : span(step));
const highest = (points) => points.reduce((most, point) => (point[1] > most[1] ? point : most), [0, -1]);

export function comingWords({ counted, more, until, overdue }, points, step) {
  if (!counted && !more) return "Nothing is due.";
  const [at, most] = highest(points);
  const peak = points.length > 1 ? ` Most at ${clock(at * 1000)}: ${number(most)} in ${stepWords(step)}.` : "";
  const late = overdue ? ` ${number(overdue)} overdue.` : "";
  const all = more ? `${number(counted)} or more jobs: counting ended at ${local(until, Date.now())}, the grey part is not known.` : `${plural(counted, "job")}.`;
  return `${all}${late}${peak}`;
}

export function Past({ name, polled, hours }) {
  const { data, error, at } = polled;
  if (!data) return html`<section><${Loading} error=${error} what="the last hours" /></section>`;
  const { from, to, period: step } = data;
  const series = data.series?.[name];
  const span = { from, to, step };
  return html`<section class="view"><${Failure} error=${error} at=${at} what="the last hours" />
    ${series ? html`<div class="charts"><${Lateness} points=${series.lateness} hours=${hours} span=${span} />
        <${Throughput} series=${series} hours=${hours} span=${span} /></div>`
      : html`<div class="notice"><strong>Lateness and throughput of the last hours are not known</strong><p>${data.reason}</p></div>`}</section>`;
}

function Lateness({ points, hours, span: range }) {
  const [at, most] = highest(points);
  const words = most < 0 ? "Nothing was reported." : most === 0 ? "No job was handed over late." : `At worst ${span(most)}, at ${clock(at * 1000)}.`;
  return html`<${Chart} title=${`Lateness, last ${plural(hours, "hour")}`} summary=${words} points=${points} format=${span} unit="late" seconds ...${range} />`;
}

function Throughput({ series, hours, span: range }) {
  const points = series.throughput;
  const all = total(points);
  const [at, most] = highest(points);
  const share = shareOf(series.on_time, series.delayed);
  const words = `${plural(all, "job")} handed over${most > 0 ? `, at most ${number(most)} in ${stepWords(range.step)}, at ${clock(at * 1000)}` : ""}.`;
  return html`<${Chart} title=${`Throughput, last ${plural(hours, "hour")}`} gap=${0} points=${points} format=${number} unit="jobs" ...${range}
    summary=${share === null ? words : `${words} ${percent(share)} on time.`} />`;
}
