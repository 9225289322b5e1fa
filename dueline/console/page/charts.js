// What is due in a queue's next hours, and how its last hours were, as charts.

import { html, useEffect, useRef } from "./vendor/preact-htm.js";
import { clock, number, percent, plural, span, ZONE } from "./format.js";
import { HOURS } from "./job_list.js";
import { Instant, Loaded } from "./parts.js";
import { shareOf, total } from "./queue_state.js";

const HEIGHT = 190;
const MINUTE = 60;
const COUNTS = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();
const SPANS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 604800];

const startOfMinute = (seconds) => Math.floor(seconds / MINUTE) * MINUTE;
const at = (seconds) => html`<${Instant} at=${seconds * 1000} short />`;
const highest = (points) => points.reduce((most, point) => (point[1] > most[1] ? point : most), [0, -1]);

export const DueChart = ({ polled }) => html`<${Loaded} polled=${polled} what="what is due">${(due) =>
  html`<${Chart} title=${`Due in the next ${HOURS} hours`} summary=${dueWords(due)} points=${due.minutes}
    from=${due.from} to=${due.until} bars gap=${0} unit="jobs" format=${number} />`}<//>`;

export function dueWords({ counted, more, until, overdue, minutes }) {
  if (!counted && !more) return "Nothing is due.";
  const [peak, most] = highest(minutes);
  return html`${more ? html`${number(counted)} or more jobs: counting ended at <${Instant} at=${until} />, and the chart
    with it.` : `${plural(counted, "job")}.`}${overdue > 0 && ` ${number(overdue)} overdue.`}${minutes.length > 1 && html`
    ${" "}Most at ${at(peak)}: ${number(most)} in a minute.`}`;
}

export const History = ({ name, polled }) => html`<${Loaded} polled=${polled} what="the last hours">
  ${({ series, from, to }) => html`<div class="charts">
    <${Lateness} series=${series[name]} from=${from} to=${to} />
    <${Throughput} series=${series[name]} from=${from} to=${to} /></div>`}<//>`;

/** The lateness that ticks reported, and 0, which they do not log, where all that they dispatched was on time. */
export function latenessPoints({ lateness, on_time, delayed }) {
  const known = new Map([...on_time.map(([at]) => [at, 0]), ...lateness]);
  for (const [at, count] of delayed) if (count && !known.get(at)) known.delete(at);
  return [...known].sort(([a], [b]) => a - b);
}

function Lateness({ series, ...range }) {
  const points = latenessPoints(series);
  const [peak, most] = highest(points);
  const worst = most > 0 ? html`At worst ${span(most)}, at ${at(peak)}.` : "No tick reported a late job.";
  return html`<${Chart} title=${`Lateness, last ${HOURS} hours`} points=${points} format=${span} unit="late"
    summary=${worst} ...${range} />`;
}

function Throughput({ series: { throughput: points, on_time, delayed }, ...range }) {
  const [peak, most] = highest(points);
  const share = shareOf(on_time, delayed);
  const onTime = share === null ? "" : ` ${percent(share)} on time.`;
  const highWords = most > 0 && html`, at most ${number(most)} in a minute, at ${at(peak)}`;
  return html`<${Chart} title=${`Throughput, last ${HOURS} hours`} gap=${0} points=${points} format=${number}
    unit="jobs" summary=${html`${plural(total(points), "job")} dispatched${highWords}.${onTime}`} ...${range} />`;
}

/**
 * A chart by minute, and its summary in words. `points`: [[epoch seconds, value]], sparse; `from` and `to`: ISO.
 * `bars`: as bars, else in steps. `gap`: what no point means, if that is known.
 */
function Chart({ title, summary, ...shown }) {
  const { points, from, to } = shown;
  const place = useRef(null);
  useEffect(() => place.current && draw(place.current, shown), [JSON.stringify(points), from, to]);
  return html`<figure class="chart panel">
    <figcaption><h2>${title}</h2><p class="muted">${summary}</p></figcaption>
    ${points.length > 0 && html`<div ref=${place} aria-hidden="true" />`}
  </figure>`;
}

/** Every minute from `from` to `to`, with `gap` where there is no point: [times, values]. */
export function fill(points, { from, to, gap }) {
  const values = new Map(points.map(([at, value]) => [startOfMinute(at), value]));
  const first = startOfMinute(Date.parse(from) / 1000);
  const length = Math.max(1, Math.ceil((Date.parse(to) / 1000 - first) / MINUTE));
  const times = Array.from({ length }, (_, index) => first + index * MINUTE);
  return [times, times.map((at) => values.get(at) ?? gap)];
}

/** Draw it in `place`; return what takes it away. */
function draw(place, shown) {
  const plot = new uPlot(options(place, shown), fill(shown.points, { gap: null, ...shown }), place);
  const fit = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT }));
  fit.observe(place);
  return () => {
    fit.disconnect();
    plot.destroy();
  };
}

/** The points without another beside them: no line is drawn to or from them. */
const alone = ({ data }, series) => data[series].flatMap((value, index, all) =>
  (value != null && all[index - 1] == null && all[index + 1] == null ? [index] : []));

function options(place, { bars, from, to, format, unit }) {
  const colour = (name) => getComputedStyle(place).getPropertyValue(name);
  const font = "12px system-ui";
  const axis = { stroke: () => colour("--muted"), font, labelFont: font, labelSize: 18, ticks: { show: false } };
  const paths = bars ? uPlot.paths.bars({ size: [0.8, 40, 1], align: 1 }) : uPlot.paths.stepped({ align: 1 });
  const fill = () => colour(bars ? "--accent" : "--accent-soft");
  const widest = (_, labels) => 14 + 7 * Math.max(3, ...(labels ?? []).map((label) => label.length));
  // The step below the pointer; uPlot itself returns the step whose start is nearest.
  const dataIdx = ({ data: [times] }, _, nearest, at) => (times[nearest] > at ? nearest - 1 : nearest);
  return {
    width: place.clientWidth,
    height: HEIGHT,
    padding: [8, 18, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !bars }, dataIdx },
    scales: {
      x: { range: () => [startOfMinute(Date.parse(from) / 1000), Date.parse(to) / 1000] },
      y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, values: (_, times) => times.map((at) => clock(at * 1000)), size: 26,
        label: `Time, ${ZONE}` },
      { ...axis, grid: { stroke: () => colour("--line"), width: 1 }, values: (_, values) => values.map(format),
        incrs: unit === "jobs" ? COUNTS : SPANS, size: widest, space: 32,
        label: unit === "jobs" ? "Jobs a minute" : "Time past due" },
    ],
    series: [
      { label: "At", value: (_, at) => (at ? clock(at * 1000) : "") },
      { label: unit, value: (_, value) => (value == null ? "" : format(value)), paths, fill, width: bars ? 0 : 1.5,
        stroke: () => colour("--accent"),
        points: { show: !bars, size: 5, fill: () => colour("--accent"), filter: alone } },
    ],
  };
}
