// One job: its way, what it carries, and what can be done with it.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { get, remove } from "./api.js";
import { Confirm } from "./confirm.js";
import { span } from "./format.js";
import { JobForm, MoveForm } from "./job_form.js";
import { findListed } from "./listed.js";
import { payloadText } from "./matching.js";
import { Button, Facts, Failure, Instant, JobLink, State, Text, useDialog, View } from "./parts.js";
import { usePolled } from "./refresh.js";
import { queuePath } from "./route.js";
import { STATES, way } from "./way.js";

const SECONDS = 5;
const ENDED = ["succeeded", "failed", "skipped", "cancelled"];
const LEFT = "It has left the table: it is in its queue, or on its way there";
const OF_SCHEDULE = "A run of a schedule cannot be moved: run the schedule, or cancel this job and schedule a copy";
const NO_COPY = "The API tells a payload only while a job waits in the table, as JSON";

export function Job({ queue, id }) {
  const polled = usePolled(() => get(`/api/queues/${queue}/jobs/${encodeURIComponent(id)}`), SECONDS, id);
  const job = polled.data;
  const listed = useListed(queue, job);
  const [dialog, open] = useDialog(polled.again);
  const title = html`Job <code>${id.split(".").at(-1).slice(0, 8)}</code>
    ${job && html` <${State} word=${job.state.replace("_", " ")} tone=${STATES[job.state][0]} />`}`;
  return html`<${View} title=${title} polled=${polled} seconds=${SECONDS} what="the job">${() => html`
    <p>${STATES[job.state][1]} ${job.moved_to && html`It was moved to <${JobLink} id=${job.moved_to} />.`}</p>
    <${Verbs} job=${job} listed=${listed.job} open=${open} />
    <section class="panel"><h2>Its way</h2><${Way} job=${job} /></section>
    <section class="panel"><h2>What it is</h2><${Facts} facts=${facts(job, listed.job)} /></section>
    <section class="panel"><h2>Payload</h2><${Payload} job=${job} listed=${listed} /></section>${dialog}`}<//>`;
}

/** The job as it is listed, which is all that tells its payload; kept once it has been seen. */
function useListed(queue, job) {
  const [listed, setListed] = useState({});
  const isWaiting = job?.state === "scheduled";
  useEffect(() => {
    if (!isWaiting) return;
    findListed(queue, job).then((found) => found && setListed({ job: found }), (error) => setListed({ error }));
  }, [isWaiting]);
  return listed;
}

function Verbs({ job, listed, open }) {
  const ended = ENDED.includes(job.state) && "It has ended";
  const unmoved = { scheduled: (job.schedule ?? listed?.schedule) && OF_SCHEDULE, accepted: "" }[job.state] ?? (ended || LEFT);
  const copied = listed && "payload" in listed ? "" : NO_COPY;
  const { queue } = job;
  return html`<p class="row">
    <${Button} writes why=${unmoved} onClick=${() => open(MoveForm, { job, now: true })}>Run now …<//>
    <${Button} writes why=${unmoved} onClick=${() => open(MoveForm, { job })}>Reschedule …<//>
    <${Button} writes why=${copied} onClick=${() => open(JobForm, { queue, copy: listed })}>Schedule a copy …<//>
    <${Button} writes why=${ended} onClick=${() => open(Cancel, { job })}>Cancel the job …<//>
  </p>${unmoved === OF_SCHEDULE && html`<p class="muted">${unmoved}.</p>`}`;
}

const Way = ({ job }) => html`<ol class="way">${way(job).map(({ name, at, note, tone = "ok", ahead }) => html`
  <li key=${name} class=${ahead ? "next" : tone}>
    <strong>${name}</strong>${ahead && html` <span class="muted">to come</span>`}
    ${at && html` <${Instant} at=${at} /> <span class="muted">(<${Instant} at=${at} near />)</span>`}
    ${note && ` ${note}`}
  </li>`)}</ol>`;

function facts(job, listed = {}) {
  const { schedule, nominal, started, ended } = { ...listed, ...job };
  const trace = listed.traceparent?.split("-")[1];
  const isListed = (value) => (listed.id ? value ?? null : undefined);
  return [
    ["Id", html`<code>${job.id}</code>`],
    ["Due", html`<${Instant} at=${job.due} />`],
    ["Route", job.route === "table" ? "by the table" : "straight to its queue"],
    ["Attempts", job.attempts ?? "none told"],
    ["Last attempt took", started && ended && span((Date.parse(ended) - Date.parse(started)) / 1000)],
    ["Error", job.error && html`<code>${job.error}</code>`],
    ["Tenant", isListed(listed.tenant)],
    ["Priority", isListed(listed.priority)],
    ["Trace", isListed(trace && html`<code title=${listed.traceparent}>${trace}</code>`)],
    ["Schedule", schedule && html`<a href=${queuePath(job.queue, "schedules", schedule)}>${schedule}</a>`],
    ["Nominal", nominal && html`<${Instant} at=${nominal} />`, "The instant that the schedule's rule names"],
  ];
}

function Payload({ job, listed }) {
  if (listed.error) return html`<${Failure} error=${listed.error} what="the payload" />`;
  if (listed.job) return html`<${Text} value=${payloadText(listed.job, 2)} />`;
  return html`<p class="muted">The API tells it, with the attributes, only while the job waits in the table.
    ${job.state === "failed" && html` Its <a href=${queuePath(job.queue, "dead-letters")}>dead letter</a> has it.`}</p>`;
}

function Cancel({ job, onClose }) {
  const act = async () => {
    const { state } = await remove(`/api/queues/${job.queue}/jobs/${job.id}`);
    return html`<strong>${state === "cancelled" ? "Cancelled" : "Cancel requested"}.</strong> ${STATES[state][1]}`;
  };
  return html`<${Confirm} title="Cancel this job?" verb="Cancel the job" danger back="Keep it" act=${act} onClose=${onClose}>
    <p>It is due <${Instant} at=${job.due} />. A job that is cancelled cannot be brought back; a copy can be scheduled.</p>
  <//>`;
}
