// Figures over time: a chart, its summary in words, and its values as a table.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { clock, local } from "./format.js";
import { Button, Table } from "./parts.js";

const HEIGHT = 150;
const POWERS = Array.from({ length: 9 }, (_, power) => 10 ** power);
const COUNTS = POWERS.flatMap((power) => [power, 2 * power, 5 * power]);
const HOURS = [1, 2, 4, 8, 12, 24, 48, 96, 192].map((hours) => hours * 3600);
const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, ...HOURS];

/**
 * `points`: [[epoch seconds, value]], sparse; `from` and `to`: ISO; `step`: seconds of a point. `bars`: as bars,
 * otherwise in steps. `gap`: what a missing point means, 0 or null. `onPick` (epoch seconds): a point was chosen.
 * `seconds`: the values are.
 */
export function Chart({ title, summary, ...shown }) {
  const { points, from, to, onPick } = shown;
  const place = useRef(null);
  useEffect(() => place.current && drawn(place.current, shown), [JSON.stringify(points), from, to]);
  return html`<figure class="chart panel">
    <figcaption><h2>${title}</h2><p class="muted">${summary}</p></figcaption>
    ${points.length > 0 && html`<div class=${onPick && "pick"} ref=${place} aria-hidden="true" />`}
    <${Values} title=${title} ...${shown} />
  </figure>`;
}

function Values({ title, points, format, unit, onPick }) {
  const [open, setOpen] = useState(false);
  const columns = [
    { name: "at", label: "From", head: true, cell: ([at]) => whenOf(at, onPick) },
    { name: "value", label: unit, end: true, cell: ([, value]) => format(value) },
  ];
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>As a table<span class="hidden">: ${title}</span></summary>
    ${open && html`<${Table} caption=${title} columns=${columns} rows=${points} keyOf=${([at]) => at} />`}
  </details>`;
}

function whenOf(at, onPick) {
  const text = local(at * 1000, Date.now());
  if (!onPick) return text;
  return html`<${Button} kind="quiet" label=${`Jobs due at ${text}`} onClick=${() => onPick(at)}>${text}<//>`;
}

/** Every step from `from` to `to`, with `gap` where there is no point: [times, values]. */
export function filled(points, { from, to, step, gap }) {
  const known = new Map(points.map(([at, value]) => [Math.floor(at / step) * step, value]));
  const first = Math.floor(Date.parse(from) / 1000 / step) * step;
  const length = Math.max(1, Math.ceil((Date.parse(to) / 1000 - first) / step));
  const times = Array.from({ length }, (_, index) => first + index * step);
  return [times, times.map((at) => known.get(at) ?? gap)];
}

/** Draw it in `place`; return what takes it away. */
function drawn(place, shown) {
  const plot = new uPlot(options(place, shown), filled(shown.points, { gap: null, ...shown }), place);
  const fit = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT }));
  fit.observe(place);
  plot.over.addEventListener("click", () => {
    const [at, value] = plot.data.map((values) => values[plot.cursor.idxs[1]]);
    if (value) shown.onPick?.(at);
  });
  return () => {
    fit.disconnect();
    plot.destroy();
  };
}

function options(place, { bars, from, to, seconds, format, unit }) {
  const colour = (name) => getComputedStyle(place).getPropertyValue(name);
  const axis = { stroke: () => colour("--muted"), font: "12px system-ui", ticks: { show: false } };
  const paths = bars ? uPlot.paths.bars({ size: [0.8, 40, 1], align: 1 }) : uPlot.paths.stepped({ align: 1 });
  const fill = () => colour(bars ? "--accent" : "--accent-soft");
  const widest = (_, labels) => 14 + 7 * Math.max(3, ...(labels ?? []).map((label) => label.length));
  // The step that the pointer is in; uPlot itself tells the nearest beginning of one.
  const dataIdx = ({ data: [times] }, _, nearest, at) => (times[nearest] > at ? nearest - 1 : nearest);
  return {
    width: place.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !bars }, dataIdx },
    scales: {
      x: { range: () => [from, to].map((at) => Date.parse(at) / 1000) },
      y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, values: (_, times) => times.map((at) => clock(at * 1000)), space: 64, size: 26 },
      { ...axis, grid: { stroke: () => colour("--line"), width: 1 }, values: (_, values) => values.map(format),
        incrs: seconds ? SECONDS : COUNTS, size: widest, space: 32 },
    ],
    series: [
      { label: "At", value: (_, at) => (at ? clock(at * 1000) : "") },
      { label: unit, value: (_, value) => (value == null ? "" : format(value)), paths, fill, width: bars ? 0 : 1.5,
        stroke: () => colour("--accent"), points: { show: false } },
    ],
  };
}
