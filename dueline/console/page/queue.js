// One queue: how it is, what is coming, how it was, and what it is set to.

import { html } from "./vendor/preact-htm.js";
import { get, usePolled } from "./api.js";
import { Controls } from "./controls.js";
import { Coming, Past, lastHour } from "./figures.js";
import { atLeast, number, percent, plural, relative, span } from "./format.js";
import { Facts, Instant, State, Tiles, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";
import { isPoor, standingOf, STILL_SECONDS } from "./standing.js";

const SECONDS = 10;
const FIGURES_SECONDS = 60;
const SPANS = [1, 3, 6, 24];

export function Queue({ queue: name, query, path }) {
  const hours = SPANS.includes(Number(query.hours)) ? Number(query.hours) : 6;
  const asked = `/console${queuePath(name)}`;
  const polled = usePolled(() => get(`/api${queuePath(name)}`), SECONDS, name);
  const due = usePolled(() => get(`${asked}/due?hours=${hours}`), SECONDS * 3, `${name} ${hours}`);
  const past = usePolled(() => get(`${asked}/figures?hours=${hours}`), FIGURES_SECONDS, `${name} ${hours}`);
  const queue = polled.data && { ...polled.data, name, ...lastHour(polled, past.data?.series?.[name]) };
  const [dialog, open] = useDialog(() => [polled, due].forEach((each) => each.again()));
  return html`<${View} title=${name} polled=${polled} seconds=${SECONDS} what="the queue"
    beside=${queue && html`<${Controls} queue=${queue} open=${open} />`}>
    ${() => html`<${Why} queue=${queue} /><${Tiles} tiles=${now(queue)} />
      <${Spans} hours=${hours} path=${path} />
      <${Coming} name=${name} polled=${due} hours=${hours} />
      <${Past} name=${name} polled=${past} hours=${hours} />
      <${Settings} queue=${queue} />${dialog}`}<//>`;
}

const WELL = { word: "well", tone: "ok", why: "Jobs are handed over in time, and none failed for good" };

function Why({ queue }) {
  const said = standingOf(queue);
  return html`<ul class="why">${(said.length ? said : [WELL]).map(({ word, tone, why }) =>
    html`<li key=${word}><${State} word=${word} tone=${tone} /> ${why}.</li>`)}</ul>`;
}

const Spans = ({ hours, path }) => html`<nav class="row" aria-label="Span of the charts"><span class="muted">Span</span>
  ${SPANS.map((each) => html`<a key=${each} class="button quiet" href=${`${path}?hours=${each}`}
    aria-current=${each === hours ? "true" : undefined}>${each} h</a>`)}</nav>`;

function now(queue) {
  const { name, lateness, on_time: onTime, fence_age: fence, dead, next_due: next } = queue;
  const rate = queue.rate ?? "no limit";
  const isStill = fence === null || fence > STILL_SECONDS;
  return [
    { label: "Late", value: span(lateness), tone: lateness > 60 && "bad", note: "oldest job" },
    { label: "On time", value: onTime === null ? "–" : percent(onTime), tone: isPoor(onTime) && "warn",
      note: onTime === null ? "not known" : "of the last hour" },
    { label: "Dead", value: number(dead), tone: dead && "bad", note: "failed for good",
      href: queuePath(name, "dead-letters") },
    { label: "Waiting", value: number(queue.waiting), note: "for workers" },
    { label: "In flight", value: number(queue.in_flight), note: "at workers" },
    { label: "Delayed", value: number(queue.delayed), note: "due in a moment" },
    { label: "Scheduled", value: atLeast(queue.scheduled, queue.more_scheduled), note: "for later",
      href: queuePath(name, "jobs") },
    { label: "Next due", value: html`<${Instant} at=${next} near />`, note: next && html`<${Instant} at=${next} />` },
    { label: "Last tick", value: fence === null ? "never" : relative(-1000 * fence, 0), tone: isStill && "bad",
      note: "60 s is well" },
    { label: "Rate", value: rate, tone: rate.startsWith("0/") && "warn", note: "all its workers" },
  ];
}

const levelWords = ({ waiting, in_flight, delayed }) =>
  `${number(waiting)} waiting, ${number(in_flight)} in flight, ${number(delayed)} delayed`;

function Settings({ queue: { levels = [], partitions, taking = partitions, ...queue } }) {
  const slices = `${number(partitions)}${taking === partitions ? "" : `, of which ${number(taking)} take jobs`}`;
  const perLevel = levels.length > 1 ? levels : [];
  return html`<section class="panel"><h2>Settings</h2>
    <p class="muted">They are set in <code>queues.yaml</code>, and heeded once that is deployed.</p>
    <${Facts} facts=${[
      ["Partitions", slices, "Slices of the queue, each with its own tick"],
      ["Levels", plural(queue.priorities, "priority", "priorities"), "Each is an SQS queue, 1 the most urgent"],
      ...perLevel.map((level, index) => [`Level ${index + 1}`, levelWords(level)]),
      ["Retention", span(queue.retention), "How long after its due time a job is kept, and may still be sent"],
      ["Direct horizon", span(queue.direct_horizon), "What is due within it goes straight to the queue"],
      ["Precise", queue.precise ? "yes" : "no", "Jobs come up to 1.25 s early, and its workers wait that out"],
      ["Tracking", queue.track ? "yes" : "no", "Whether look-ups tell what workers noted of a job"],
    ]} /></section>`;
}
