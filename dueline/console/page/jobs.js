// The jobs of a queue: those scheduled, in due order, or those that workers recorded. The filters are in the address.

import { html } from "./vendor/preact-htm.js";
import { usePolled } from "./api.js";
import { fieldText, instant, number, plural, ZONE } from "./format.js";
import { STATES } from "./job.js";
import { fetchJobs, payloadText } from "./job_list.js";
import { Field, Input, Instant, JobLink, Select, State, Table, Unreadable, View } from "./parts.js";
import { queuePath, setQuery } from "./route.js";

const SECONDS = 30;
const MOST = 200;
const SHOWN_CHARACTERS = 160;

export function Jobs({ queue, query }) {
  const key = JSON.stringify([queue, query.from, query.to, query.kind, query.state]);
  const polled = usePolled(() => fetchJobs(queue, query, MOST), SECONDS, key);
  return html`<${View} title="Jobs" above=${html`<${Filters} query=${query} />`} polled=${polled} seconds=${SECONDS}
    what="jobs">${(fetched) => html`<${List} queue=${queue} state=${query.state} ...${fetched} />`}<//>`;
}

function Filters({ query }) {
  const time = (name, label) => {
    const set = ({ target }) => setQuery({ [name]: target.value && instant(target.value) });
    return html`<${Field} label=${label}><input type="datetime-local" step="1" title=${`Time in ${ZONE}`}
      value=${fieldText(query[name])} onChange=${set} /><//>`;
  };
  return html`<div class="filters" role="group" aria-label="Filters">
    <${Select} form=${[query, setQuery]} name="state" label="State" options=${Object.entries(LISTED)} />
    ${time("from", "Due from")}${time("to", "Due before")}
    <${Input} form=${[query, setQuery]} name="kind" label="Kind" placeholder="all" type="search" />
  </div>`;
}

const LISTED = {
  "": "scheduled", attempted: "all that workers received", running: "running", dispatched: "between attempts",
  failed: "failed", succeeded: "succeeded", skipped: "skipped",
};

const RECORDED = html`<p class="muted">As workers recorded them, the last due first. What no worker has received is not
  among them; of a worker that died, a job stays running.</p>`;

function List({ queue, state, jobs, more, unreadable }) {
  const count = `${more ? "The first " : ""}${plural(jobs.length, "job")} ${state ? "recorded" : "scheduled"}`;
  return html`${state && RECORDED}<p role="status">${count}${more && ": narrow the time span to see others"}.</p>
    <${Unreadable} rows=${unreadable} />
    <${Table} caption=${state ? "Recorded jobs" : "Scheduled jobs"} rows=${jobs} keyOf=${({ id }) => id} stack
      columns=${state ? RECORDED_COLUMNS : columns(queue)} empty=${state ? NONE_RECORDED : NONE} />`;
}

const NONE = "No such job is scheduled in this time span. The search above finds dispatched jobs, by whole id or key.";
const NONE_RECORDED = "Workers recorded no such job in this time span.";

const RECORDED_COLUMNS = [
  { name: "name", label: "Due", head: true, cell: ({ due }) => html`<${Instant} at=${due} />` },
  { name: "states", label: "State", cell: ({ state }) =>
    html`<${State} word=${LISTED[state]} tone=${state === "dispatched" ? "warn" : STATES[state][0]} />` },
  { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
  { name: "kind", label: "Kind" },
  { name: "key", label: "Key" },
  { name: "count", label: "Attempts", end: true, cell: ({ attempts }) => number(attempts) },
  { name: "started", label: "Last began", cell: ({ started }) => html`<${Instant} at=${started} />` },
  { name: "ended", label: "Ended", cell: ({ ended }) => (ended ? html`<${Instant} at=${ended} />` : "not recorded") },
  { name: "error wrap", label: "Error", cell: ({ error }) => error && html`<code>${error}</code>` },
];

const columns = (queue) => [
  { name: "name", label: "Due", head: true, cell: ({ due }) => html`<${Instant} at=${due} />` },
  { name: "near", label: "In", cell: ({ due }) => html`<${Instant} at=${due} near />` },
  { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
  { name: "kind", label: "Kind" },
  { name: "key", label: "Key" },
  { name: "tenant", label: "Tenant" },
  { name: "schedule", label: "Schedule",
    cell: ({ schedule }) => schedule && html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "payload wrap", label: "Payload", cell: (job) => html`<code>${cut(payloadText(job))}</code>` },
];

const cut = (text) => (text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)} …` : text);
