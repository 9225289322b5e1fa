// The jobs of a queue that are scheduled, in due order.

import { html, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { CancelMany } from "./cancel_many.js";
import { Filters } from "./filters.js";
import { JobForm } from "./job_form.js";
import { JobLink } from "./job_link.js";
import { fetchJobs, found, matcher, payloadText } from "./listed.js";
import { Button, Empty, Failure, Field, Freshness, Instant, Loading, Table, useDialog } from "./parts.js";
import { usePolled } from "./refresh.js";
import { navigate, queuePath } from "./route.js";

const STEP = 200;
const MOST = 1000;
const SECONDS = 30;
const SHOWN_CHARACTERS = 160;
const MORE = [["text", "Text in the payload", "any"], ["field", "Field of the payload", "campaign = 42"]];

export function Jobs({ queue, query }) {
  const most = useRef(STEP);
  const key = JSON.stringify([queue, query.from, query.to]);
  const polled = usePolled(() => fetchJobs(queue, query, most.current), SECONDS, key);
  const [dialog, open, close] = useDialog();
  const closed = (done) => { close(); if (done) polled.again(); };
  const more = () => { most.current += STEP; polled.again(); };
  return html`<div class="view"><div class="head"><h1>Jobs</h1><${Freshness} polled=${polled} seconds=${SECONDS} /></div>
    <div class="row">
      <${Button} kind="primary" writes onClick=${() => open("schedule")}>Schedule a job …<//>
      <${Button} writes onClick=${() => open("cancel")}>Cancel many …<//>
      <${ById} queue=${queue} />
    </div>
    <${Filters} query=${query} more=${MORE} />
    <${Failure} error=${polled.error} at=${polled.at} />
    ${polled.data ? html`<${List} queue=${queue} query=${query} fetched=${polled.data} more=${more} />`
      : !polled.error && html`<${Loading} what="jobs" />`}
    ${dialog === "schedule" && html`<${JobForm} queue=${queue} onClose=${closed} />`}
    ${dialog === "cancel" && html`<${CancelMany} queue=${queue} query=${query} onClose=${closed} />`}</div>`;
}

/** Go to the job of an id, be it of this queue or of another one. */
function ById({ queue }) {
  const [id, setId] = useState("");
  const go = (event) => {
    event.preventDefault();
    const asked = id.trim();
    if (asked) navigate(queuePath(/^([a-z0-9-]{1,60})\.\d/.exec(asked)?.[1] ?? queue, "jobs", asked));
  };
  return html`<form class="row" role="search" onSubmit=${go}><${Field} label="Find a job by its id">
    <input type="search" value=${id} onInput=${(event) => setId(event.target.value)} spellcheck="false" /><//>
    <${Button} type="submit">Open<//></form>`;
}

function List({ queue, query, fetched, more }) {
  const { jobs, wrong } = useMemo(() => picked(fetched.jobs, query), [fetched, JSON.stringify(query)]);
  if (wrong) return html`<${Empty}>${wrong}<//>`;
  const why = fetched.jobs.length >= MOST && `${MOST} are shown at most: narrow the time span`;
  return html`<p role="status">${found(jobs.length, fetched)} ${fetched.more ? "fetched" : "scheduled"}.</p>
    ${jobs.length ? html`<${Table} caption="Scheduled jobs" columns=${columns(queue)} rows=${jobs}
      keyOf=${(job) => job.id} stack />` : html`<${Empty}>${fetched.jobs.length ? "None of them matches." : NONE}<//>`}
    ${fetched.more && html`<p><${Button} onClick=${more} why=${why}>Fetch ${STEP} more<//></p>`}`;
}

function picked(jobs, query) {
  try {
    return { jobs: jobs.filter(matcher(query)) };
  } catch (error) {
    return { wrong: error.message };
  }
}

const NONE = "Nothing is scheduled in this time span. What was handed over already is looked up by its id.";

const columns = (queue) => [
  { name: "name", label: "Due", head: true, cell: (job) => html`<${Instant} at=${job.due} />` },
  { name: "near", label: "In", cell: (job) => html`<${Instant} at=${job.due} near />` },
  { name: "id", label: "Job", cell: (job) => html`<${JobLink} id=${job.id} />` },
  { name: "tenant", label: "Tenant", cell: (job) => job.tenant ?? "" },
  { name: "schedule", label: "Schedule", cell: ({ schedule }) =>
    schedule && html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "payload wrap", label: "Payload", cell: (job) => html`<code>${cut(payloadText(job))}</code>` },
];

const cut = (text) => (text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)} …` : text);
