// The jobs of a queue that are scheduled, in due order. What is looked for is in the address, to be sent on.

import { html, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { get, usePolled } from "./api.js";
import { CancelMany } from "./cancel_many.js";
import { JobForm } from "./job_form.js";
import { fetchJobs } from "./listed.js";
import { found, matcher, payloadText } from "./matching.js";
import { Button, Empty, Failure, Field, Input, Instant, JobLink, Table, useDialog, View } from "./parts.js";
import { queuePath, setQuery } from "./route.js";
import { fieldText, instant } from "./when.js";

const STEP = 200;
const MOST = 1000;
const SECONDS = 30;
const SHOWN_CHARACTERS = 160;

export function Jobs({ queue, query }) {
  const most = useRef(STEP);
  const key = JSON.stringify([queue, query.from, query.to]);
  const polled = usePolled(() => fetchJobs(queue, query, most.current), SECONDS, key);
  const [dialog, open] = useDialog(polled.again);
  const more = () => {
    most.current += STEP;
    polled.again();
  };
  const above = html`<div class="row">
      <${Button} kind="primary" writes onClick=${() => open(JobForm, { queue })}>Schedule a job …<//>
      <${Button} writes onClick=${() => open(CancelMany, { queue, query })}>Cancel all that match …<//>
      <${Find} queue=${queue} />
    </div>
    <${Filters} query=${query} />${dialog}`;
  return html`<${View} title="Jobs" above=${above} polled=${polled} seconds=${SECONDS} what="jobs">
    ${(fetched) => html`<${List} queue=${queue} query=${query} fetched=${fetched} more=${more} />`}<//>`;
}

/** Go to the job of an id, be it of this queue or of another one, or of an idempotency key of this queue. */
function Find({ queue }) {
  const form = useState({ sought: "" });
  const [error, setError] = useState(null);
  const go = async (event) => {
    event.preventDefault();
    const sought = form[0].sought.trim();
    const id = ID.test(sought) ? sought : await idOf(queue, sought).catch(setError);
    if (id) location.assign(queuePath(ID.exec(id)[1], "jobs", id));
  };
  return html`<form class="row" role="search" onSubmit=${go}>
    <${Input} form=${form} name="sought" label="Find a job by its id or key" type="search" required />
    <${Button} type="submit">Open<//></form><${Failure} error=${error} what="the job" />`;
}

const ID = /^([a-z0-9-]{1,60})\.\d+\.[dt]\.\d+\.[0-9a-f-]+$/;

async function idOf(queue, key) {
  const { jobs } = await get(`/api/queues/${queue}/jobs?${new URLSearchParams({ key })}`);
  return jobs[0].id;
}

function Filters({ query }) {
  const text = (name, label, placeholder) =>
    html`<${Input} form=${[query, setQuery]} name=${name} label=${label} placeholder=${placeholder} type="search" />`;
  const moment = (name, label) => {
    const set = ({ target }) => setQuery({ [name]: target.value && instant(target.value) });
    return html`<${Field} label=${label}><input type="datetime-local" step="1"
      value=${fieldText(query[name])} onChange=${set} /><//>`;
  };
  return html`<div class="filters" role="group" aria-label="Filters">
    ${moment("from", "Due from")}${moment("to", "Due before")}
    ${text("tenant", "Tenant", "all")}${text("text", "Text in the payload", "any")}
    ${text("field", "Field of the payload", "campaign = 42")}
  </div>`;
}

function List({ queue, query, fetched, more }) {
  const { jobs, wrong } = useMemo(() => picked(fetched.jobs, query), [fetched, JSON.stringify(query)]);
  if (wrong) return html`<${Empty}>${wrong}<//>`;
  const why = fetched.jobs.length >= MOST && `${MOST} are shown at most: narrow the time span`;
  return html`<p role="status">${found(jobs.length, fetched)} ${fetched.more ? "fetched" : "scheduled"}.</p>
    ${jobs.length
      ? html`<${Table} caption="Scheduled jobs" columns=${columns(queue)} rows=${jobs} keyOf=${({ id }) => id} stack />`
      : html`<${Empty}>${fetched.jobs.length ? "None of them matches." : NONE}<//>`}
    ${fetched.more && html`<p><${Button} onClick=${more} why=${why}>Fetch ${STEP} more<//></p>`}`;
}

const NONE = "Nothing is scheduled in this time span. What was handed over already is looked up by its id.";

function picked(jobs, query) {
  try {
    return { jobs: jobs.filter(matcher(query)) };
  } catch (error) {
    return { wrong: error.message };
  }
}

const columns = (queue) => [
  { name: "name", label: "Due", head: true, cell: ({ due }) => html`<${Instant} at=${due} />` },
  { name: "near", label: "In", cell: ({ due }) => html`<${Instant} at=${due} near />` },
  { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
  { name: "tenant", label: "Tenant", cell: ({ tenant }) => tenant },
  { name: "schedule", label: "Schedule",
    cell: ({ schedule }) => schedule && html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "payload wrap", label: "Payload", cell: (job) => html`<code>${cut(payloadText(job))}</code>` },
];

const cut = (text) => (text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)} …` : text);
