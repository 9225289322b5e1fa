// What is due in a queue's next hours, and how its last hours were.

import { html } from "./vendor/preact-htm.js";
import { Chart } from "./chart.js";
import { clock, local, number, percent, plural, span } from "./format.js";
import { Loaded } from "./parts.js";
import { navigate, queuePath } from "./route.js";

const HOUR = 3600;
const RECENT = 300;

/** What the first view tells of a queue, of its overview and what CloudWatch has: lateness, on_time, overdue. */
export function lastHour({ data, at }, series) {
  const overdue = data.next_due ? Math.max(0, (at - Date.parse(data.next_due)) / 1000) : 0;
  const since = (points, seconds) => (points ?? []).filter(([when]) => when >= at / 1000 - seconds);
  const lateness = Math.max(overdue, ...since(series?.lateness, RECENT).map(([, value]) => value));
  return { lateness, overdue: overdue > 0, on_time: shareOf(since(series?.on_time, HOUR), series?.throughput) };
}

function shareOf(shares, throughput) {
  const jobs = new Map(throughput);
  const all = shares.reduce((sum, [at]) => sum + (jobs.get(at) ?? 0), 0);
  return all ? shares.reduce((sum, [at, share]) => sum + share * (jobs.get(at) ?? 0), 0) / all : null;
}

const iso = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");
const stepWords = (step) => (step === 60 ? "a minute" : span(step));
const highest = (points) => points.reduce((most, point) => (point[1] > most[1] ? point : most), [0, -1]);

export function Coming({ name, polled, hours }) {
  const step = hours > 6 ? 600 : 60;
  const pick = (from) =>
    navigate(`${queuePath(name, "jobs")}?${new URLSearchParams({ from: iso(from), to: iso(from + step) })}`);
  return html`<${Loaded} polled=${polled} what="what is due">${(data) => {
    const points = grouped(data.minutes, step);
    return html`<${Chart} title=${`Due in the next ${plural(hours, "hour")}`} summary=${comingWords(data, points, step)}
      points=${points} step=${step} from=${data.from} to=${data.until} bars gap=${0} unit="jobs" format=${number}
      onPick=${pick} />`;
  }}<//>`;
}

export function grouped(points, step) {
  const sums = new Map();
  for (const [at, count] of points) {
    const from = at - (at % step);
    sums.set(from, (sums.get(from) ?? 0) + count);
  }
  return [...sums];
}

export function comingWords({ counted, more, until, overdue }, points, step) {
  if (!counted && !more) return "Nothing is due.";
  const [at, most] = highest(points);
  const peak = points.length > 1 ? ` Most at ${clock(at * 1000)}: ${number(most)} in ${stepWords(step)}.` : "";
  const late = overdue ? ` ${number(overdue)} overdue.` : "";
  const end = more && `counting ended at ${local(until, Date.now())}, and the chart with it.`;
  return `${more ? `${number(counted)} or more jobs: ${end}` : `${plural(counted, "job")}.`}${late}${peak}`;
}

export const Past = ({ polled, hours }) => html`<${Loaded} polled=${polled} what="the last hours">
  ${({ series, reason, from, to, period: step }) => (series
    ? html`<div class="charts"><${Lateness} points=${series.lateness} ...${{ hours, from, to, step }} />
        <${Throughput} series=${series} ...${{ hours, from, to, step }} /></div>`
    : html`<div class="notice"><strong>Lateness and throughput of the last hours are not known</strong>
        <p>${reason}</p></div>`)}<//>`;

function Lateness({ hours, points, ...range }) {
  const [at, most] = highest(points);
  const worst = most > 0 ? `At worst ${span(most)}, at ${clock(at * 1000)}.` : "No job was handed over late.";
  return html`<${Chart} title=${`Lateness, last ${plural(hours, "hour")}`} points=${points} format=${span} unit="late"
    summary=${most < 0 ? "Nothing was reported." : worst} seconds ...${range} />`;
}

function Throughput({ hours, series: { throughput: points, on_time: shares }, ...range }) {
  const all = points.reduce((sum, [, jobs]) => sum + jobs, 0);
  const [at, most] = highest(points);
  const share = shareOf(shares, points);
  const peak = most > 0 ? `, at most ${number(most)} in ${stepWords(range.step)}, at ${clock(at * 1000)}` : "";
  return html`<${Chart} title=${`Throughput, last ${plural(hours, "hour")}`} gap=${0} points=${points} format=${number}
    unit="jobs" summary=${`${plural(all, "job")} handed over${peak}. ${share === null ? "" : `${percent(share)} on time.`}`}
    ...${range} />`;
}
