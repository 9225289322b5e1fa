// The first view: all queues, worst first.

import { html } from "./vendor/preact-htm.js";
import { get, usePolled } from "./api.js";
import { atLeast, number, percent, plural, span } from "./format.js";
import { Empty, Instant, State, Table, Tiles, useDialog, View } from "./parts.js";
import { Controls } from "./queue.js";
import { current, lastHour, statesOf, sortWorstFirst } from "./queue_state.js";
import { queuePath } from "./route.js";

const SECONDS = 10;
const METRICS_SECONDS = 60;

export function Queues() {
  const polled = usePolled(() => get("/console/overview"), SECONDS);
  const metrics = usePolled(() => get("/console/figures"), METRICS_SECONDS);
  const [dialog, open] = useDialog(polled.refresh);
  const recent = current(metrics);
  const ttlOff = recent?.ttl_off;
  const queues = polled.data?.queues.map(({ queue: name, ...queue }) =>
    ({ ...queue, name, ...lastHour({ data: queue, at: polled.at }, recent, name) }));
  return html`<${View} title="Queues" polled=${polled} seconds=${SECONDS} what="the queues">
    ${() => html`${ttlOff && TTL_OFF}<${Tiles} tiles=${totals(queues)} />
      <${Table} caption="Queues, worst first" stack columns=${columns(open)} rows=${sortWorstFirst(queues)}
        keyOf=${({ name }) => name} classOf=${toneOf} />
      ${!queues.length && html`<${Empty}>No queue is deployed yet: <code>queues.yaml</code> declares them.<//>`}
      ${metrics.error && html`<p class="muted">On time is not known${
        metrics.at && html` since <${Instant} at=${metrics.at} />`}: ${metrics.error.detail}</p>`}${dialog}`}<//>`;
}

const TTL_OFF = html`<p class="notice bad">DynamoDB's TTL is off while jobs are hours late: no row is deleted until
  every partition has caught up.</p>`;

const toneOf = (queue) => (queue.error?.status === 403 ? "quiet" : statesOf(queue)[0]?.tone ?? "quiet");

/** The tiles over all queues; those without an answer count as nothing. */
export function totals(queues) {
  const sum = (field) => queues.reduce((all, queue) => all + (queue[field] ?? 0), 0);
  const bad = queues.filter((queue) => statesOf(queue)[0]?.tone === "bad").length;
  const paused = queues.filter((queue) => queue.paused).length;
  const lateness = Math.max(0, ...queues.map((queue) => queue.lateness ?? 0));
  const isMore = queues.some((queue) => queue.more_scheduled);
  return [
    { label: "Need attention", value: number(bad), tone: bad && "bad", note: `of ${plural(queues.length, "queue")}` },
    { label: "Late", value: span(lateness), tone: lateness > 60 && "bad", note: "oldest job past due" },
    { label: "Dead", value: number(sum("dead")), tone: sum("dead") && "bad", note: "failed for good" },
    { label: "Paused", value: number(paused), tone: paused && "warn", note: "queues" },
    { label: "Waiting", value: number(sum("waiting")), note: "for workers" },
    { label: "In flight", value: number(sum("in_flight")), note: "at workers" },
    { label: "Scheduled", value: atLeast(sum("scheduled"), isMore), note: "for later" },
  ];
}

function States({ queue }) {
  const states = statesOf(queue);
  if (!states.length) return html`<${State} word="healthy" tone="ok" />`;
  return states.map(({ word, tone, why }) => html`<${State} key=${word} word=${word} tone=${tone} title=${why} />`);
}

const UNKNOWN = html`<span class="none" title="Not known">–</span>`;
const NONE = html`<span class="none">none</span>`;
const zero = (value) => (value ? number(value) : html`<span class="none">0</span>`);
const link = (queue, below, text) => html`<a href=${queuePath(queue.name, below)}>${text}</a>`;

const MAY_BE_NONE = ["next_due", "rate"];

/** A column of figures that may not be known. */
function figure(name, label, title, show) {
  const isKnown = (queue) => !queue.error && (queue[name] != null || MAY_BE_NONE.includes(name));
  return { name, label, title, end: true, cell: (queue) => (isKnown(queue) ? show(queue) : UNKNOWN) };
}

const columns = (open) => [
  { name: "name", label: "Queue", head: true, cell: ({ name }) => html`<a href=${queuePath(name)}>${name}</a>` },
  { name: "states", label: "State", cell: (queue) => html`<${States} queue=${queue} />` },
  figure("lateness", "Late", "How far the oldest job not yet dispatched is past due", ({ lateness }) => span(lateness)),
  figure("on_time", "On time", "Share of the last hour's jobs that were visible up to 60 s after their due time",
    (queue) => percent(queue.on_time)),
  figure("waiting", "Waiting", "In the queue, for workers to receive", ({ waiting }) => zero(waiting)),
  figure("in_flight", "In flight", "Received by workers, and not yet done", (queue) => zero(queue.in_flight)),
  figure("dead", "Dead", "In the dead-letter queue",
    (queue) => (queue.dead ? link(queue, "dead-letters", number(queue.dead)) : zero(0))),
  figure("scheduled", "Scheduled", "In the table, for later; counted up to 1,000",
    (queue) => link(queue, "jobs", atLeast(queue.scheduled, queue.more_scheduled))),
  figure("next_due", "Next due", "The first of them", ({ next_due: at }) => html`<${Instant} at=${at} near />`),
  figure("rate", "Rate", "How many jobs its workers may start", ({ rate }) => rate ?? NONE),
  { name: "actions", label: "Actions", end: true,
    cell: (queue) => html`<${Controls} queue=${queue} open=${open} />` },
];
