// One job: its way, what it carries, and what can be done with it.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { get, send } from "./api.js";
import { Confirm } from "./confirm.js";
import { span } from "./format.js";
import { JobForm, MoveForm } from "./job_form.js";
import { JobLink } from "./job_link.js";
import { findListed } from "./listed.js";
import { payloadText } from "./matching.js";
import { Button, Facts, Failure, Freshness, Instant, Loading, State, Text, useDialog } from "./parts.js";
import { usePolled } from "./refresh.js";
import { queuePath } from "./route.js";
import { STATES, way } from "./way.js";

const SECONDS = 5;
const ENDED = ["succeeded", "failed", "skipped", "cancelled"];
const LEFT = "It has left the table: it is in its queue, or on its way there";
const OF_SCHEDULE = "A run of a schedule cannot be moved: run the schedule, or cancel this job and schedule a copy";

export function Job({ queue, id }) {
  const polled = usePolled(() => get(`/api/queues/${queue}/jobs/${encodeURIComponent(id)}`), SECONDS, id);
  const job = polled.data;
  const listed = useListed(queue, job);
  const [dialog, open, close] = useDialog();
  const closed = () => { close(); polled.again(); };
  if (!job) return html`<div class="view"><h1>Job</h1><${Loading} error=${polled.error} what="the job" /></div>`;
  const [tone, meaning] = STATES[job.state];
  return html`<div class="view"><div class="head"><h1>Job <code>${id.split(".").at(-1).slice(0, 8)}</code> <${State}
      word=${job.state.replace("_", " ")} tone=${tone} /></h1><${Freshness} polled=${polled} seconds=${SECONDS} /></div>
    <${Failure} error=${polled.error} at=${polled.at} />
    <p>${meaning} ${job.moved_to && html`It was moved to <${JobLink} id=${job.moved_to} />.`}</p>
    <${Verbs} job=${job} listed=${listed} open=${open} />
    <section class="panel"><h2>Its way</h2><${Way} job=${job} /></section>
    <section class="panel"><h2>What it is</h2><${Facts} facts=${facts(job, listed.job)} /></section>
    <section class="panel"><h2>Payload</h2><${Payload} job=${job} listed=${listed} /></section>
    ${dialog === "cancel" && html`<${Cancel} job=${job} onClose=${closed} />`}
    ${dialog === "move" && html`<${MoveForm} job=${job} onClose=${closed} />`}
    ${dialog === "now" && html`<${MoveForm} job=${job} now onClose=${closed} />`}
    ${dialog === "copy" && html`<${JobForm} queue=${queue} copy=${listed.job} onClose=${close} />`}</div>`;
}

/** The job as it is listed, which is all that tells its payload; kept once it has been seen. */
function useListed(queue, job) {
  const [listed, setListed] = useState({});
  const isWaiting = job?.state === "scheduled";
  useEffect(() => {
    if (isWaiting) findListed(queue, job).then((found) => found && setListed({ job: found }), (error) => setListed({ error }));
  }, [isWaiting]);
  return listed;
}

function Verbs({ job, listed, open }) {
  const { state } = job;
  const ended = ENDED.includes(state) && "It has ended";
  const moved = state === "scheduled" ? (job.schedule ?? listed.job?.schedule) && OF_SCHEDULE : state === "accepted" ? "" : ended || LEFT;
  const copied = "payload" in (listed.job ?? {}) ? "" : "The API tells a payload only while a job waits in the table, as JSON";
  return html`<p class="row">
    <${Button} writes why=${moved} onClick=${() => open("now")}>Run now …<//>
    <${Button} writes why=${moved} onClick=${() => open("move")}>Reschedule …<//>
    <${Button} writes why=${copied} onClick=${() => open("copy")}>Schedule a copy …<//>
    <${Button} writes why=${ended} onClick=${() => open("cancel")}>Cancel the job …<//>
  </p>${moved === OF_SCHEDULE && html`<p class="muted">${moved}.</p>`}`;
}

function Way({ job }) {
  return html`<ol class="way">${way(job).map(({ name, at, note, tone = "ok", ahead }) => html`
    <li key=${name} class=${ahead ? "next" : tone}>
      <strong>${name}</strong>${ahead && html` <span class="muted">to come</span>`}
      ${at && html` <${Instant} at=${at} /> <span class="muted">(<${Instant} at=${at} near />)</span>`}
      ${note && ` ${note}`}
    </li>`)}</ol>`;
}

function facts(job, listed = {}) {
  const { schedule, nominal } = { ...listed, ...job };
  const taken = job.started && job.ended && span((Date.parse(job.ended) - Date.parse(job.started)) / 1000);
  return [
    ["Id", html`<code>${job.id}</code>`],
    ["Due", html`<${Instant} at=${job.due} />`],
    ["Route", job.route === "table" ? "by the table" : "straight to its queue"],
    ["Attempts", job.attempts ?? "none told"],
    ...(taken ? [["Last attempt took", taken]] : []),
    ...(job.error ? [["Error", html`<code>${job.error}</code>`]] : []),
    ...(listed.id ? [["Tenant", listed.tenant], ["Priority", listed.priority], ["Trace", traceId(listed)]] : []),
    ...(schedule ? [
      ["Schedule", html`<a href=${queuePath(job.queue, "schedules", schedule)}>${schedule}</a>`],
      ["Nominal", html`<${Instant} at=${nominal} />`, "The instant that the schedule's rule names"],
    ] : []),
  ];
}

const traceId = ({ traceparent }) => traceparent && html`<code title=${traceparent}>${traceparent.split("-")[1]}</code>`;

function Payload({ job, listed }) {
  if (listed.error) return html`<${Failure} error=${listed.error} what="the payload" />`;
  if (listed.job) return html`<${Text} value=${payloadText(listed.job, 2)} />`;
  const letters = html` Its dead letter has it: see <a href=${queuePath(job.queue, "dead-letters")}>dead letters</a>.`;
  return html`<p class="muted">The API tells it, with the attributes, only while the job waits in the table.${
    job.state === "failed" && letters}</p>`;
}

function Cancel({ job, onClose }) {
  const act = async () => {
    const { body } = await send("DELETE", `/api/queues/${job.queue}/jobs/${job.id}`);
    const [, meaning] = STATES[body.state];
    return html`<strong>${body.state === "cancelled" ? "Cancelled" : "Cancel requested"}.</strong> ${meaning}`;
  };
  return html`<${Confirm} title="Cancel this job?" verb="Cancel the job" danger back="Keep it" act=${act} onClose=${onClose}>
    <p>It is due <${Instant} at=${job.due} />. A job that is cancelled cannot be brought back; a copy can be scheduled.</p>
  <//>`;
}
