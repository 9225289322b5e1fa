// One job: its payload and attributes, and the dialogs that change it.

import { html, useRef, useState } from "./vendor/preact-htm.js";
import { get, patch, remove, useKey, usePolled } from "./api.js";
import { DeadLetterOf } from "./dead_letters.js";
import { instant, seconds, span } from "./format.js";
import { payloadText } from "./job_list.js";
import { Button, Confirm, Facts, Input, Instant, JobLink, State, Text, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";

const SECONDS = 5;
const ENDED = ["succeeded", "failed", "skipped", "cancelled"];
// A job that a worker does not track, or whose worker died, is in one of these too when it has died.
const MAY_BE_DEAD = ["failed", "dispatched", "running", "unrecorded", "cancel_requested"];
const LEFT = "It has left the table: it is in its queue, or on its way there";
const OF_SCHEDULE = "A run of a schedule cannot be moved: run the schedule, or cancel this job";

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
    ${MAY_BE_DEAD.includes(state) && html`<${DeadLetterOf} job=${job} refresh=${polled.refresh} />`}
    <section class="panel"><h2>Attributes</h2><${Facts} facts=${facts(job)} /></section>
    <section class="panel"><h2>Payload</h2><${Payload} job=${job} /></section>${dialog}`}<//>`;
}

function Verbs({ job, open }) {
  const ended = ENDED.includes(job.state) && "It has ended";
  const left = !["scheduled", "accepted", job.route === "table" && "unrecorded"].includes(job.state) && LEFT;
  const unmoved = ended || left || (job.schedule && OF_SCHEDULE);
  return html`<p class="row">
    <${Button} writes why=${unmoved} onClick=${() => open(Move, { job, now: true })}>Run now …<//>
    <${Button} writes why=${unmoved} onClick=${() => open(Move, { job })}>Reschedule …<//>
    <${Button} writes why=${ended} onClick=${() => open(Cancel, { job })}>Cancel the job …<//>
  </p>${unmoved === OF_SCHEDULE && html`<p class="muted">${unmoved}.</p>`}`;
}

export function facts({ id, due, route, attempts, started, ended, error, schedule, scheduled_for, ...job }) {
  return [
    ["Id", html`<code>${id}</code>`], ["Due", html`<${Instant} at=${due} /> (<${Instant} at=${due} near />)`],
    ["Route", route === "table" ? "by the table" : "straight to its queue"],
    ["Attempts", attempts ?? "not recorded", "Recorded only with track: true"],
    ["Last attempt began", started && html`<${Instant} at=${started} />`],
    ["Last attempt took", started && ended && span((Date.parse(ended) - Date.parse(started)) / 1000)],
    ["Error", error && html`<code>${error}</code>`],
    // Only a row of the table has it, and all else that waits there: without one, nobody knows whether there is a key.
    ["Key", job.key ?? ("priority" in job ? undefined : "not recorded")], ["Kind", job.kind],
    ["Tenant", job.tenant], ["Priority", job.priority],
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

/** A dialog that moves a job to another time; `now`: without a choice. */
function Move({ job, now = false, onClose }) {
  const form = useState({ delay: "1h", at: "" });
  const [{ delay, at }] = form;
  const key = useKey();
  const act = async () => {
    const time = now ? { delay: 0 } : at ? { at: instant(at) } : { delay: seconds(delay) };
    const moved = await patch(`/api/queues/${job.queue}/jobs/${job.id}`, time, key);
    return html`<${JobLink} id=${moved.id} /> took its place, due <${Instant} at=${moved.due} />.`;
  };
  return html`<${Confirm} title=${now ? "Run this job now?" : "Reschedule this job"}
    verb=${now ? "Run now" : "Reschedule"} act=${act} onClose=${onClose}>
    <p>It gets a new id, and is due ${now ? "at once" : "when you say"}. Its old ids, and its key, lead to it.</p>
    ${!now && html`<${Input} form=${form} name="delay" label="Due after" hint="90, 15m, 2h or 3d" />
      <${Input} form=${form} name="at" label="Or at" hint="In your own time zone; empty: after the delay"
        type="datetime-local" step="1" />`}
  <//>`;
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
