// The first view: all queues, worst first.

import { html } from "./vendor/preact-htm.js";
import { get, readEach, usePolled } from "./api.js";
import { atLeast, number, percent, plural, span } from "./format.js";
import { Instant, Reading, State, Table, Tiles, useDialog, View } from "./parts.js";
import { Controls } from "./queue.js";
import { current, HEALTHY, lastHour, noteIdle, READING, statesOf, sortWorstFirst } from "./queue_state.js";
import { queuePath } from "./route.js";

export const QUEUES_SECONDS = 10;
const METRICS_SECONDS = 60;

export const usePolledQueues = () =>
  usePolled((report) => readEach((queue) => get(`/api${queuePath(queue)}`).then((overview) => noteIdle(overview)), report), QUEUES_SECONDS);

export function Queues() {
  const polled = usePolledQueues();
  // Not beside the first one, which would be slower: the table waits for no log.
  const isShown = Boolean(polled.at || polled.error);
  const metrics = usePolled(isShown ? () => get("/console/figures") : null, METRICS_SECONDS, `${isShown}`);
  const [dialog, open] = useDialog(polled.refresh);
  const recent = current(metrics);
  const ttlOff = recent?.ttl_off;
  const queues = polled.data?.queues.map(({ queue: name, ...queue }) =>
    ({ ...queue, name, ...lastHour({ data: queue, at: polled.at ?? Date.now() }, recent, name) }));
  return html`<${View} title="Queues" polled=${polled} seconds=${QUEUES_SECONDS} what="the queues">
    ${() => html`${ttlOff && TTL_OFF}<${Reading} queues=${queues} /><${Tiles} tiles=${totals(queues)} />
      <${Table} caption="Queues, worst first" stack columns=${columns(open)} rows=${sortWorstFirst(queues)}
        keyOf=${({ name }) => name} classOf=${toneOf} empty=${NO_QUEUE} />
      ${metrics.error && html`<p class="muted">Late to dispatch and On time are not known${
        metrics.at && html` since <${Instant} at=${metrics.at} />`}: ${metrics.error.detail}</p>`}${dialog}`}<//>`;
}

const NO_QUEUE = html`No queue is deployed yet: <code>queues.yaml</code> declares them.`;
const TTL_OFF = html`<p class="notice bad">DynamoDB's TTL is off while jobs are hours late: no row is deleted until
  every partition has caught up.</p>`;

const toneOf = (queue) => (queue.reading || queue.error?.status === 403 ? "quiet" : statesOf(queue)[0]?.tone ?? "quiet");

const UNSURE = ["no access", "not known", READING];
const worstOf = (queue) => statesOf(queue)[0] ?? {};
const isKnown = (queue, field) => !queue.error && queue[field] != null;

/** The tiles over all queues, each of those whose figure is known: of how many, if not of all; "–" if of none. */
export function totals(queues) {
  const all = plural(queues.length, "queue");
  const tile = (label, known, note, value, tone) => ({ label, value: known.length || !queues.length ? value : "–",
    tone, note: known.length < queues.length ? `${number(known.length)} of ${all}` : note });
  const sum = (label, field, note, tone, show = number) => {
    const known = queues.filter((queue) => isKnown(queue, field));
    const value = known.reduce((total, queue) => total + queue[field], 0);
    return tile(label, known, note, show(value, known), value > 0 && tone);
  };
  const rated = queues.filter((queue) => !UNSURE.includes(worstOf(queue).word));
  const bad = rated.filter((queue) => worstOf(queue).tone === "bad").length;
  const late = queues.filter((queue) => isKnown(queue, "lateness"));
  const lateness = Math.max(0, ...late.map((queue) => queue.lateness));
  return [
    tile("Need attention", rated, `of ${all}`, number(bad), bad && "bad"),
    tile("Late to dispatch", late, "oldest job past due", span(lateness), lateness > 60 && "bad"),
    sum("Dead", "dead", "failed for good", "bad"), sum("Paused", "paused", "queues", "warn"),
    sum("Waiting", "waiting", "for workers"), sum("In flight", "in_flight", "or between attempts"),
    sum("Scheduled", "scheduled", "for later", "", (count, known) =>
      atLeast(count, known.some((queue) => queue.more_scheduled))),
  ];
}

function States({ queue }) {
  const states = statesOf(queue);
  if (queue.error) return html`<${State} ...${states[0]} /><small>${queue.error.detail}</small>`;
  return (states.length ? states : [HEALTHY]).map(({ word, tone, why }) => html`<${State} key=${word} word=${word} tone=${tone} title=${why} />`);
}

const UNKNOWN = html`<span class="none" title="Not known">–</span>`;
const NO_JOBS = html`<span class="none" title="No job left the table in the last hour; of jobs sent directly it is not measured">–</span>`;
const NONE = html`<span class="none">none</span>`;
const zero = (value) => (value ? number(value) : html`<span class="none">0</span>`);
const link = (queue, below, text) => html`<a href=${queuePath(queue.name, below)}>${text}</a>`;

const MAY_BE_NONE = ["next_due", "rate", "on_time"];

/** A column of figures that may not be known. */
function figure(name, label, title, show) {
  const isShown = (queue) => isKnown(queue, name) || (!queue.error && queue[name] === null && MAY_BE_NONE.includes(name));
  return { name, label, title, end: true, cell: (queue) => (isShown(queue) ? show(queue) : UNKNOWN) };
}

const columns = (open) => [
  { name: "name", label: "Queue", head: true, cell: ({ name }) => html`<a href=${queuePath(name)}>${name}</a>` },
  { name: "states", label: "State", cell: (queue) => html`<${States} queue=${queue} />` },
  figure("lateness", "Late to dispatch", "How far the oldest job not yet dispatched is past due", ({ lateness }) => span(lateness)),
  figure("on_time", "On time", "Share of the last hour's jobs from the table that were visible up to 60 s after their due time",
    ({ on_time }) => (on_time === null ? NO_JOBS : percent(on_time))),
  figure("waiting", "Waiting", "In the queue, for workers to receive", ({ waiting }) => zero(waiting)),
  figure("in_flight", "In flight", "Received by workers and not done, or between attempts: SQS counts both as in flight",
    (queue) => zero(queue.in_flight)),
  figure("dead", "Dead", "In the dead-letter queue",
    (queue) => (queue.dead ? link(queue, "dead-letters", number(queue.dead)) : zero(0))),
  figure("scheduled", "Scheduled", "In the table, for later; counted up to 1,000",
    (queue) => link(queue, "jobs", atLeast(queue.scheduled, queue.more_scheduled))),
  figure("next_due", "Next due", "The first of them", ({ next_due: at }) => html`<${Instant} at=${at} near />`),
  figure("rate", "Rate", "How many jobs its workers may start", ({ rate }) => rate ?? NONE),
  { name: "actions", label: "Actions", end: true,
    cell: (queue) => html`<${Controls} queue=${queue} open=${open} />` },
];
