// Figures over time: a chart, its summary in words, and its values as a table.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { clock, local } from "./format.js";
import { Button, Table } from "./parts.js";

const HEIGHT = 150;
const COUNTS = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, ...[1, 2, 4, 8, 12, 24, 48, 96, 192].map((hours) => hours * 3600)];

const widest = (_, labels) => 14 + 7 * Math.max(3, ...(labels ?? []).map((label) => label.length));

/**
 * `points`: [[epoch seconds, value]], sparse; `from` and `to`: ISO; `step`: seconds of a point. `bars`: as bars, otherwise
 * in steps. `gap`: what a missing point means, 0 or null. `until` (ISO): what is after it is not known, and drawn so. `onPick`
 * (epoch seconds): a point was chosen. `seconds`: the values are.
 */
export function Chart({ title, summary, points, from, to, step = 60, bars = false, gap = null, until, format, unit, onPick, seconds = false }) {
  const place = useRef(null);
  const [at, setAt] = useState(null);
  const data = filled(points, { from, to, step, gap });
  useEffect(() => place.current && drawn(place.current, { data, bars, range: [from, to], seconds, format, until, onPoint: setAt }), [JSON.stringify(points), from, to, until]);
  const named = (index) => `${clock(data[0][index] * 1000)}: ${data[1][index] == null ? "nothing reported" : `${format(data[1][index])} ${unit}`}`;
  return html`<figure class="chart">
    <figcaption><h2>${title}</h2><p>${summary}</p></figcaption>
    ${points.length > 0 && html`<div class=${onPick ? "plot pick" : "plot"} ref=${place} aria-hidden="true" onClick=${() => onPick && data[1][at] && onPick(data[0][at])} />`}
    <p class="point" aria-hidden="true">${at != null && at < data[0].length ? named(at) : "\u00a0"}</p>
    <${Values} ...${{ title, points, format, unit, onPick }} />
  </figure>`;
}

function Values({ title, points, format, unit, onPick }) {
  const [open, setOpen] = useState(false);
  const columns = [
    { name: "at", label: "From", head: true, cell: ([at]) => whenOf(at, onPick) },
    { name: "value", label: unit, end: true, cell: ([, value]) => format(value) },
  ];
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>As a table<span class="hidden">: ${title}</span></summary>
    ${open && (points.length ? html`<${Table} caption=${title} columns=${columns} rows=${points} keyOf=${([at]) => at} />` : html`<p class="empty">No values.</p>`)}
  </details>`;
}

const whenOf = (at, onPick) => {
  const text = local(at * 1000, Date.now());
  return onPick ? html`<${Button} kind="quiet" label=${`Jobs due at ${text}`} onClick=${() => onPick(at)}>${text}<//>` : text;
};

/** Every step from `from` to `to`, with `gap` where there is no point: [times, values]. */
export function filled(points, { from, to, step, gap }) {
  const known = new Map(points.map(([at, value]) => [Math.floor(at / step) * step, value]));
  const first = Math.floor(Date.parse(from) / 1000 / step) * step;
  const length = Math.max(1, Math.ceil((Date.parse(to) / 1000 - first) / step));
  const times = Array.from({ length }, (_, index) => first + index * step);
  return [times, times.map((at) => known.get(at) ?? gap)];
}

function drawn(place, { data, ...shown }) {
  const plot = new uPlot(options(place, shown), data, place);
  const theme = matchMedia("(prefers-color-scheme: dark)");
  const fit = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT }));
  const recolour = () => plot.redraw(true, true);
  fit.observe(place);
  theme.addEventListener("change", recolour);
  return () => {
    fit.disconnect();
    theme.removeEventListener("change", recolour);
    plot.destroy();
  };
}

function options(place, { bars, range, seconds, format, until, onPoint }) {
  const colour = (name) => () => getComputedStyle(place).getPropertyValue(name);
  const axis = { stroke: colour("--muted"), font: "12px system-ui", ticks: { show: false } };
  const grid = { stroke: colour("--line"), width: 1 };
  const paths = bars ? uPlot.paths.bars({ size: [0.8, 40, 1], align: 1 }) : uPlot.paths.stepped({ align: 1 });
  return {
    width: place.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !bars } },
    scales: { x: { range: () => range.map((at) => Date.parse(at) / 1000) }, y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] } },
    axes: [
      { ...axis, grid: { show: false }, values: (_, times) => times.map((at) => clock(at * 1000)), space: 64, size: 26 },
      { ...axis, grid, values: (_, values) => values.map(format), incrs: seconds ? SECONDS : COUNTS, size: widest, space: 32 },
    ],
    series: [{}, { paths, stroke: colour("--accent"), fill: colour(bars ? "--accent" : "--accent-soft"), width: bars ? 0 : 1.5, points: { show: false } }],
    hooks: {
      setCursor: [(plot) => onPoint(stepAt(plot))],
      drawClear: [(plot) => until && shade(plot, Date.parse(until) / 1000, colour("--unknown")())],
    },
  };
}

/** The step that the pointer is in; uPlot itself tells the nearest beginning of one. */
function stepAt(plot) {
  const { idx, left } = plot.cursor;
  return idx && plot.data[0][idx] > plot.posToVal(left, "x") ? idx - 1 : idx;
}

function shade(plot, from, fill) {
  const { left, top, width, height } = plot.bbox;
  const begin = Math.min(Math.max(plot.valToPos(from, "x", true), left), left + width);
  plot.ctx.fillStyle = fill;
  plot.ctx.fillRect(begin, top, left + width - begin, height);
}
