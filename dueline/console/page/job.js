// One job: its way, what it carries, and what can be done with it.

import { html, useRef } from "./vendor/preact-htm.js";
import { get, remove, usePolled } from "./api.js";
import { span } from "./format.js";
import { JobForm, MoveForm } from "./job_form.js";
import { findListed } from "./listed.js";
import { payloadText } from "./matching.js";
import { Button, Confirm, Facts, Failure, Instant, JobLink, State, Text, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";
import { STATES, way } from "./way.js";

const SECONDS = 5;
const ENDED = ["succeeded", "failed", "skipped", "cancelled"];
const LEFT = "It has left the table: it is in its queue, or on its way there";
const OF_SCHEDULE = "A run of a schedule cannot be moved: run the schedule, or cancel this job and schedule a copy";
const NO_COPY = "The API tells a payload only while a job waits in the table, as JSON";

export function Job({ queue, id }) {
  // The list alone tells its payload, and only while it waits: that is kept.
  const listed = useRef();
  const load = async () => {
    const job = await get(`/api/queues/${queue}/jobs/${id}`);
    if (job.state === "scheduled") listed.current ??= await findListed(queue, job).catch((unlisted) => ({ unlisted }));
    return { ...listed.current, ...job };
  };
  const polled = usePolled(load, SECONDS, id);
  const [dialog, open] = useDialog(polled.again);
  const state = polled.data?.state;
  const title = html`Job <code>${id.split(".").at(-1).slice(0, 8)}</code>
    ${state && html` <${State} word=${state.replace("_", " ")} tone=${STATES[state][0]} />`}`;
  return html`<${View} title=${title} polled=${polled} seconds=${SECONDS} what="the job">${(job) => html`
    <p>${STATES[state][1]} ${job.moved_to && html`It was moved to <${JobLink} id=${job.moved_to} />.`}</p>
    <${Verbs} job=${job} open=${open} />
    <section class="panel"><h2>Its way</h2><${Way} job=${job} /></section>
    <section class="panel"><h2>What it is</h2><${Facts} facts=${facts(job)} /></section>
    <section class="panel"><h2>Payload</h2><${Payload} job=${job} /></section>${dialog}`}<//>`;
}

function Verbs({ job, open }) {
  const ended = ENDED.includes(job.state) && "It has ended";
  const left = !["scheduled", "accepted"].includes(job.state) && LEFT;
  const unmoved = ended || left || (job.schedule && OF_SCHEDULE);
  return html`<p class="row">
    <${Button} writes why=${unmoved} onClick=${() => open(MoveForm, { job, now: true })}>Run now …<//>
    <${Button} writes why=${unmoved} onClick=${() => open(MoveForm, { job })}>Reschedule …<//>
    <${Button} writes why=${"payload" in job ? "" : NO_COPY}
      onClick=${() => open(JobForm, { queue: job.queue, copy: job })}>Schedule a copy …<//>
    <${Button} writes why=${ended} onClick=${() => open(Cancel, { job })}>Cancel the job …<//>
  </p>${unmoved === OF_SCHEDULE && html`<p class="muted">${unmoved}.</p>`}`;
}

const Way = ({ job }) => html`<ol class="way">${way(job).map(({ name, at, note, tone = "ok", ahead }) => html`
  <li key=${name} class=${ahead ? "next" : tone}>
    <strong>${name}</strong>${ahead && html` <span class="muted">to come</span>`}
    ${at && html` <${Instant} at=${at} /> <span class="muted">(<${Instant} at=${at} near />)</span>`}
    ${note && ` ${note}`}
  </li>`)}</ol>`;

function facts({ id, due, route, attempts, started, ended, error, traceparent, schedule, nominal, ...job }) {
  return [
    ["Id", html`<code>${id}</code>`], ["Due", html`<${Instant} at=${due} />`],
    ["Route", route === "table" ? "by the table" : "straight to its queue"],
    ["Attempts", attempts ?? "none told"],
    ["Last attempt took", started && ended && span((Date.parse(ended) - Date.parse(started)) / 1000)],
    ["Error", error && html`<code>${error}</code>`],
    ["Tenant", job.tenant], ["Priority", job.priority],
    ["Trace", traceparent && html`<code title=${traceparent}>${traceparent.split("-")[1]}</code>`],
    ["Schedule", schedule && html`<a href=${queuePath(job.queue, "schedules", schedule)}>${schedule}</a>`],
    ["Nominal", nominal && html`<${Instant} at=${nominal} />`, "The instant that the schedule's rule names"],
  ];
}

function Payload({ job }) {
  if (job.unlisted) return html`<${Failure} error=${job.unlisted} what="the payload" />`;
  const isTold = ["payload", "payload_text", "payload_at"].some((form) => form in job);
  if (isTold) return html`<${Text} value=${payloadText(job, 2)} />`;
  return html`<p class="muted">The API tells it, with the attributes, only while the job waits in the table.
    ${job.state === "failed" && html` Its <a href=${queuePath(job.queue, "dead-letters")}>dead letter</a> has it`}</p>`;
}

function Cancel({ job, onClose }) {
  const path = `/api/queues/${job.queue}/jobs/${job.id}`;
  const act = async () => {
    const { state } = await remove(path);
    // Whoever cancels is not told of a move that was before it; where the look-up fails, what is said holds anyway.
    const { moved_to: moved } = await get(path).catch(() => ({}));
    if (moved) return html`<strong>Moved meanwhile</strong>, not cancelled: it comes as <${JobLink} id=${moved} />.`;
    return html`<strong>${state === "cancelled" ? "Cancelled" : "Cancel requested"}.</strong> ${STATES[state][1]}`;
  };
  return html`<${Confirm} title="Cancel this job?" verb="Cancel the job" danger back="Keep it"
    act=${act} onClose=${onClose}>
    <p>It is due <${Instant} at=${job.due} />. A job that is cancelled cannot be brought back.</p>
  <//>`;
}
