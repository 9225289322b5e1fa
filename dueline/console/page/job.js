// One job: its timeline, payload and attributes, and the dialogs that change it.

import { html, useRef } from "./vendor/preact-htm.js";
import { get, remove, usePolled } from "./api.js";
import { DeadLetterOf } from "./dead_letters.js";
import { span } from "./format.js";
import { JobForm, MoveForm } from "./job_form.js";
import { payloadText } from "./job_list.js";
import { Button, Confirm, Facts, Instant, JobLink, State, Text, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";

const SECONDS = 5;
const ENDED = ["succeeded", "failed", "skipped", "cancelled"];
// A job that a worker does not track, or whose worker died, is in one of these too when it has died.
const MAY_BE_DEAD = ["failed", "dispatched", "running", "unrecorded", "cancel_requested"];
const LEFT = "It has left the table: it is in its queue, or on its way there";
const OF_SCHEDULE = "A run of a schedule cannot be moved: run the schedule, or cancel this job and schedule a copy";
const NO_COPY = "The API returns a payload only while the job is in the table, and only JSON";

export function Job({ queue, id }) {
  // It has its payload only while it waits in the table: what was shown once is kept.
  const shown = useRef();
  const load = async () => {
    const job = await get(`/api/queues/${queue}/jobs/${id}`);
    shown.current = shown.current?.id === job.id ? { ...shown.current, ...job } : job;
    return shown.current;
  };
  const polled = usePolled(load, SECONDS, id);
  const [dialog, open] = useDialog(polled.refresh);
  const state = polled.data?.state;
  const title = html`Job <code title=${id}>${id.split(".").at(-1).slice(0, 8)}</code>
    ${state && html` <${JobState} state=${state} />`}`;
  return html`<${View} title=${title} polled=${polled} seconds=${SECONDS} what="the job">${(job) => html`
    ${job.moved_from && html`<p role="status"><strong>Moved.</strong> It is now <${JobLink} id=${job.id} />.</p>`}
    <p>${STATES[state][1]}</p>
    <${Verbs} job=${job} open=${open} />
    <section class="panel"><h2>Timeline</h2><${Timeline} job=${job} /></section>
    ${MAY_BE_DEAD.includes(state) && html`<${DeadLetterOf} job=${job} refresh=${polled.refresh} />`}
    <section class="panel"><h2>Attributes</h2><${Facts} facts=${facts(job)} /></section>
    <section class="panel"><h2>Payload</h2><${Payload} job=${job} /></section>${dialog}`}<//>`;
}

function Verbs({ job, open }) {
  const ended = ENDED.includes(job.state) && "It has ended";
  const left = !["scheduled", "accepted", job.route === "table" && "unrecorded"].includes(job.state) && LEFT;
  const unmoved = ended || left || (job.schedule && OF_SCHEDULE);
  return html`<p class="row">
    <${Button} writes why=${unmoved} onClick=${() => open(MoveForm, { job, now: true })}>Run now …<//>
    <${Button} writes why=${unmoved} onClick=${() => open(MoveForm, { job })}>Reschedule …<//>
    <${Button} writes why=${"payload" in job ? "" : NO_COPY}
      onClick=${() => open(JobForm, { queue: job.queue, copy: job })}>Schedule a copy …<//>
    <${Button} writes why=${ended} onClick=${() => open(Cancel, { job })}>Cancel the job …<//>
  </p>${unmoved === OF_SCHEDULE && html`<p class="muted">${unmoved}.</p>`}`;
}

const Timeline = ({ job }) => html`<ol class="timeline">${timeline(job).map((step) => html`
  <li key=${step.name} class=${step.ahead ? "next" : step.tone ?? "ok"}>
    <strong>${step.name}</strong>${step.ahead && html` <span class="muted">to come</span>`}
    ${step.at && html` <${Instant} at=${step.at} /> <span class="muted">(<${Instant} at=${step.at} near />)</span>`}
    ${step.note && `: ${step.note}`}
  </li>`)}</ol>`;

export function facts({ id, due, route, attempts, started, ended, error, traceparent, schedule, scheduled_for, ...job }) {
  return [
    ["Id", html`<code>${id}</code>`], ["Due", html`<${Instant} at=${due} />`],
    ["Route", route === "table" ? "by the table" : "straight to its queue"],
    ["Attempts", attempts ?? "not recorded"],
    ["Last attempt took", started && ended && span((Date.parse(ended) - Date.parse(started)) / 1000)],
    ["Error", error && html`<code>${error}</code>`],
    // Only a row of the table has it, and all else that waits there: without one, nobody knows whether there is a key.
    ["Key", job.key ?? ("priority" in job ? undefined : "not recorded")], ["Kind", job.kind],
    ["Tenant", job.tenant], ["Priority", job.priority],
    ["Trace", traceparent && html`<code title=${traceparent}>${traceparent.split("-")[1]}</code>`],
    ["Schedule", schedule && html`<a href=${queuePath(job.queue, "schedules", schedule)}>${schedule}</a>`],
    ["Scheduled for", scheduled_for && html`<${Instant} at=${scheduled_for} />`, "By the schedule's rule"],
  ];
}

function Payload({ job }) {
  const hasPayload = ["payload", "payload_text", "payload_at"].some((form) => form in job);
  if (hasPayload) return html`<${Text} value=${payloadText(job, 2)} />`;
  return html`<p class="muted">The API returns it only while the job is in the table.
    ${job.state === "failed" && html` Its <a href=${queuePath(job.queue, "dead-letters")}>dead letter</a> has it.`}
  </p>`;
}

function Cancel({ job, onClose }) {
  const path = `/api/queues/${job.queue}/jobs/${job.id}`;
  const act = async () => {
    const { state, due, moved_from: moved } = await remove(path);
    return html`<strong>${state === "cancelled" ? "Cancelled" : "Cancel requested"}.</strong> ${STATES[state][1]}
      ${moved && html` It had been moved to <${Instant} at=${due} />.`}`;
  };
  return html`<${Confirm} title="Cancel this job?" verb="Cancel the job" danger back="Keep it"
    act=${act} onClose=${onClose}>
    <p>It is due <${Instant} at=${job.due} />. A cancelled job cannot be brought back.</p>
  <//>`;
}

export const JobState = ({ state, word = state.replace("_", " ") }) =>
  html`<${State} word=${word} tone=${STATES[state][0]} title=${STATES[state][1]} />`;

/** The tone and the meaning of each state. */
export const STATES = {
  accepted: ["idle", "It is on its way to the table."],
  unrecorded: ["idle", "It has no record: it went straight to SQS, is on its way to the table, or never existed. To be"
    + " sure, schedule it again under the same id or key."],
  scheduled: ["ok", "It waits in the table until it is due."],
  dispatched: ["ok", "It was sent to its queue."],
  running: ["ok", "A worker has it now."],
  succeeded: ["ok", "Done."],
  failed: ["bad", "Its attempts are used up."],
  skipped: ["warn", "It did not run: another run of its schedule had not ended."],
  cancelled: ["idle", "It will not be delivered, guaranteed."],
  cancel_requested: ["warn", "It may still be delivered: it is in its queue or on its way. Workers may skip it."],
  parked: ["bad", "It is in the dispatch dead-letter queue: dueline dead --parked --retry puts it back."],
  planned: ["idle", "In the table."],
  missed: ["warn", "It created no job. The jobs of a backfill are not listed here."],
  forgotten: ["idle", "Past its retention: its record was deleted."],
};

const DISPATCHED = ["dispatched", "running", "succeeded", "failed", "skipped"];
const TO_COME = ["accepted", "scheduled"];

/** The steps of a job, as far as the API knows them: {name, at, note, tone, ahead}; those `ahead` are to come. */
export function timeline({ state, due, route, attempts = 0, started, ended, error, moved_from }) {
  const [tone, meaning] = STATES[state];
  const isAhead = TO_COME.includes(state);
  const before = attempts === 2 ? "attempt 1" : `attempts 1 to ${attempts - 1}`;
  const outcome = !ended ? "Running." : error ? `Failed: ${error}.` : "";
  const steps = [
    [state !== "unrecorded", { name: "accepted", note: "The API does not say when." }],
    [route === "table" && !["accepted", "unrecorded"].includes(state), { name: "scheduled", note: "In the table." }],
    [moved_from, { name: "moved", note: "To another time, under another id." }],
    [state === "cancelled", { name: "cancelled", note: meaning }],
    [state !== "cancelled", { name: "due", at: due, ahead: Date.parse(due) > Date.now() }],
    [state === "parked", { name: "parked", tone, note: meaning }],
    [isAhead || DISPATCHED.includes(state), { name: "dispatched", note: "To its queue.", ahead: isAhead }],
    [attempts > 1, { name: before, tone: "warn", note: "Failed." }],
    [attempts, { name: `attempt ${attempts}`, at: started, note: outcome, tone: error ? "bad" : "ok" }],
    [state === "cancel_requested", { name: "cancel requested", tone, note: meaning }],
    [state === "dispatched", { name: attempts ? "next attempt" : "received", ahead: true, note: NEEDS_TRACK }],
    [ended && state !== "dispatched", { name: state, at: ended, tone, note: meaning }],
  ];
  return steps.flatMap(([applies, step]) => (applies ? [step] : []));
}

const NEEDS_TRACK = "Recorded only with track: true.";
