// The first view: all queues, worst first.

import { html } from "./vendor/preact-htm.js";
import { get } from "./api.js";
import { Controls } from "./controls.js";
import { lastHour } from "./figures.js";
import { atLeast, number, percent, plural, span } from "./format.js";
import { Empty, Failure, Field, Freshness, Instant, Loading, State, Table, Tile } from "./parts.js";
import { usePolled } from "./refresh.js";
import { queuePath, setQuery } from "./route.js";
import { standingOf, sumsOf, worstFirst } from "./standing.js";

const SECONDS = 10;
const FIGURES_SECONDS = 60;
const SEARCH_FROM = 8;
const MOST_SHOWN = 200;

export function Queues({ query }) {
  const polled = usePolled(() => get("/console/overview"), SECONDS);
  const figures = usePolled(() => get("/console/figures"), FIGURES_SECONDS);
  const { data, error, at, again } = polled;
  const { series, reason = figures.error?.detail } = figures.data ?? {};
  const queues = data?.queues.map((queue) => ({ ...queue, name: queue.queue, ...lastHour({ data: queue, at }, series?.[queue.queue]) }));
  return html`<div class="view">
    <div class="head"><h1>Queues</h1><${Freshness} polled=${polled} seconds=${SECONDS} /></div>
    ${data && html`<${Failure} error=${error} at=${at} what="the queues" />`}
    ${data ? html`<${Found} queues=${queues} reason=${reason} find=${query.find ?? ""} again=${again} />` : html`<${Loading} error=${error} what="the queues" />`}</div>`;
}

function Found({ queues, reason, find, again }) {
  const found = worstFirst(queues.filter(({ name }) => name.includes(find.trim().toLowerCase())));
  const many = queues.length >= SEARCH_FROM || find;
  if (!queues.length) return html`<${Empty}>No queue is deployed yet: <code>queues.yaml</code> declares them.<//>`;
  return html`<div class="view">
    <${Sums} queues=${queues} />
    ${many && html`<${Search} find=${find} found=${found.length} of=${queues.length} />`}
    <${Table} caption="Queues, worst first" stack columns=${columns(again)} rows=${found.slice(0, MOST_SHOWN)} keyOf=${(q) => q.name}
      classOf=${(queue) => (queue.error?.status === 403 ? "calm" : standingOf(queue)[0]?.tone ?? "calm")} />
    ${!found.length && html`<${Empty}>No queue has “${find}” in its name.<//>`}
    ${found.length > MOST_SHOWN && html`<${Empty}>${number(found.length - MOST_SHOWN)} more that are no worse: search by name.<//>`}
    ${reason && html`<p class="muted small">On time is not known: ${reason}</p>`}</div>`;
}

function Search({ find, found, of }) {
  return html`<div class="filters" role="search"><${Field} label="Search by name">
    <input type="search" value=${find} onInput=${(event) => setQuery({ find: event.target.value })} spellcheck="false" /><//>
    <p class="muted" role="status">${find ? `${found} of ${plural(of, "queue")}` : plural(of, "queue")}</p></div>`;
}

function Sums({ queues }) {
  const sums = sumsOf(queues);
  return html`<div class="tiles">
    <${Tile} label="Need attention" value=${number(sums.bad)} tone=${sums.bad ? "bad" : ""} note=${`of ${plural(queues.length, "queue")}`} />
    <${Tile} label="Late" value=${span(sums.lateness)} tone=${sums.lateness > 60 ? "bad" : ""} note="oldest job past due" />
    <${Tile} label="Dead" value=${number(sums.dead)} tone=${sums.dead ? "bad" : ""} note="failed for good" />
    <${Tile} label="Paused" value=${number(sums.paused)} tone=${sums.paused ? "warn" : ""} note="queues" />
    <${Tile} label="Waiting" value=${number(sums.waiting)} note="for workers" />
    <${Tile} label="In flight" value=${number(sums.inFlight)} note="at workers" />
    <${Tile} label="Scheduled" value=${atLeast(sums.scheduled, sums.moreScheduled)} note="for later" />
  </div>`;
}

export const States = ({ queue }) => {
  const said = standingOf(queue);
  return said.length ? said.map((say) => html`<${State} key=${say.word} ...${say} title=${say.why} />`) : html`<${State} word="well" tone="ok" />`;
};

const shown = (field, show = number) => (queue) =>
  queue.error || queue[field] === null ? html`<span class="none" title="Not known">–</span>` : show(queue[field]);
const zero = (value) => (value ? number(value) : html`<span class="none">0</span>`);
const dead = (queue) => (queue.dead ? html`<a href=${queuePath(queue.name, "dead-letters")}>${number(queue.dead)}</a>` : zero(queue.dead));
const later = ({ name, scheduled: count, more_scheduled: more }) => html`<a href=${queuePath(name, "jobs")}>${atLeast(count, more)}</a>`;
const told = (show) => (queue) => (queue.error ? html`<span class="none" title="Not known">–</span>` : show(queue));

const columns = (again) => [
  { name: "name", label: "Queue", head: true, cell: ({ name }) => html`<a href=${queuePath(name)}>${name}</a>` },
  { name: "states", label: "State", cell: (queue) => html`<${States} queue=${queue} />` },
  { name: "late", label: "Late", end: true, title: "How far the oldest job not handed over is past due", cell: shown("lateness", span) },
  { name: "ontime", label: "On time", end: true, title: "Share of the last hour's jobs that were visible up to 60 s after their due time", cell: shown("on_time", percent) },
  { name: "waiting", label: "Waiting", end: true, title: "In the queue, for workers to receive", cell: shown("waiting", zero) },
  { name: "flight", label: "In flight", end: true, title: "Received by workers, and not yet done", cell: shown("in_flight", zero) },
  { name: "dead", label: "Dead", end: true, title: "In the dead-letter queue", cell: told(dead) },
  { name: "scheduled", label: "Scheduled", end: true, title: "In the table, for later; counted up to 1,000", cell: told(later) },
  { name: "next", label: "Next due", end: true, cell: told(({ next_due }) => html`<${Instant} at=${next_due} near />`) },
  { name: "rate", label: "Rate", end: true, title: "How many jobs its workers may begin", cell: told(({ rate }) => rate ?? html`<span class="none">none</span>`) },
  { name: "actions", label: "Actions", end: true, cell: (queue) => html`<${Controls} queue=${queue} onDone=${again} />` },
];
