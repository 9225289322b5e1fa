// One queue: its state, what is due, its last hours, and the dialogs that stop or slow its workers.

import { html, useState } from "./vendor/preact-htm.js";
import { get, post, put, usePolled } from "./api.js";
import { DueChart, History } from "./charts.js";
import { atLeast, number, percent, plural, relative, span } from "./format.js";
import { fetchDue } from "./job_list.js";
import { Button, Confirm, Input, Instant, State, Tiles, useDialog, View } from "./parts.js";
import { current, HEALTHY, isPoor, lastHour, noteIdle, STALE_SECONDS, statesOf } from "./queue_state.js";
import { queuePath } from "./route.js";

const SECONDS = 10;
const METRICS_SECONDS = 60;

export function Queue({ queue: name }) {
  const polled = usePolled(() => get(`/api${queuePath(name)}`).then((overview) => noteIdle(overview)), SECONDS, name);
  const due = usePolled(() => fetchDue(name), SECONDS * 3, name);
  const metrics = usePolled(() => get(`/console${queuePath(name)}/figures`), METRICS_SECONDS, name);
  const queue = polled.data && { ...polled.data, name, ...lastHour(polled, current(metrics), name) };
  const [dialog, open] = useDialog(() => [polled, due].forEach((each) => each.refresh()));
  return html`<${View} title=${name} polled=${polled} seconds=${SECONDS} what="the queue"
    beside=${queue && html`<${Controls} queue=${queue} open=${open} />`}>
    ${() => html`<${States} queue=${queue} /><${Tiles} tiles=${tiles(queue)} />
      <${DueChart} polled=${due} /><${History} name=${name} polled=${metrics} />${dialog}`}<//>`;
}

function States({ queue }) {
  const states = statesOf(queue);
  return html`<ul class="why">${(states.length ? states : [HEALTHY]).map(({ word, tone, why }) =>
    html`<li key=${word}><${State} word=${word} tone=${tone} /> ${why}${why.endsWith("?") ? "" : "."}</li>`)}</ul>`;
}

function tiles(queue) {
  const { name, lateness, on_time: onTime, fence_age: fence, dead, next_due: next } = queue;
  const rate = queue.rate ?? "no limit";
  const isStale = fence === null || fence > STALE_SECONDS;
  return [
    { label: "Late to dispatch", value: lateness === undefined ? "–" : span(lateness), tone: lateness > 60 && "bad",
      note: lateness === undefined ? "not known" : "oldest job" },
    { label: "On time", value: onTime == null ? "–" : percent(onTime), tone: isPoor(onTime) && "warn",
      note: { undefined: "not known", null: "no job left the table in the last hour" }[onTime] ?? "of the last hour" },
    { label: "Dead", value: number(dead), tone: dead && "bad", note: "failed for good",
      href: queuePath(name, "dead-letters") },
    { label: "Waiting", value: number(queue.waiting), note: "for workers" },
    { label: "In flight", value: number(queue.in_flight), note: "or between attempts" },
    { label: "Delayed", value: number(queue.delayed), note: "due in a moment" },
    { label: "Scheduled", value: atLeast(queue.scheduled, queue.more_scheduled), note: "for later",
      href: queuePath(name, "jobs") },
    { label: "Next due", value: html`<${Instant} at=${next} near />`, note: next && html`<${Instant} at=${next} />` },
    { label: "Last tick", value: fence === null ? "never" : relative(-1000 * fence, 0), tone: isStale && "bad",
      note: "of the slowest partition" },
    { label: "Rate", value: rate, tone: rate.startsWith("0/") && "warn", note: "all its workers" },
  ];
}

const SOON = "Its workers follow within 5 seconds.";
const OTHERS = "Lambda consumers, and consumers that do not use the library, ignore it.";

/** The buttons of a queue; `open` is that of a useDialog. The dialog stays when its row in a table moves. */
export function Controls({ queue, open }) {
  const why = (queue.error && "The queue did not answer") || (queue.reading && "The queue has not answered yet");
  const button = (verb, Dialog, label) =>
    html`<${Button} writes why=${why} onClick=${() => open(Dialog, { queue })} label=${label}>${verb}<//>`;
  return html`<span class="row">
    ${queue.paused ? button("Resume", Resume, `Resume ${queue.name}`) : button("Pause", Pause, `Pause ${queue.name}`)}
    ${button("Rate", Rate, `Rate of ${queue.name}`)}
  </span>`;
}

const api = (queue, what) => `/api${queuePath(queue.name)}/${what}`;
const waiting = ({ waiting }) => `${plural(waiting, "job waits", "jobs wait")} in the queue`;

const change = (queue, verb) => async () => {
  await post(api(queue, verb), {});
  return `${queue.name} is ${verb}d. ${SOON}`;
};

const Pause = ({ queue, onClose }) => html`<${Confirm} title=${`Pause ${queue.name}?`} verb="Pause"
    act=${change(queue, "pause")} onClose=${onClose}>
    <p>Its workers start no more jobs${queue.in_flight > 0 &&
      `; they finish the ${plural(queue.in_flight, "job")} in flight or between attempts`}. ${OTHERS}</p>
    <p>Jobs are still scheduled and dispatched: ${waiting(queue)} now. A pause lasts until it is resumed,
      and <strong>what waits longer than SQS keeps messages (<code>message_retention_days</code>) is lost</strong>.</p>
  <//>`;

const Resume = ({ queue, onClose }) => html`<${Confirm} title=${`Resume ${queue.name}?`} verb="Resume"
    act=${change(queue, "resume")} onClose=${onClose}>
    <p>Its workers start jobs again: ${waiting(queue)}. Rate: ${queue.rate ?? "no limit"}.
      ${queue.rate?.startsWith("0/") && " At a rate of 0 they start none until that is changed too."}
      ${queue.waiting > 0 && !queue.rate && " To spare the services that the jobs call, set a rate first."}</p>
  <//>`;

const RATE = /^(\d{1,6}\/[smh])?$/;

function Rate({ queue, onClose }) {
  const form = useState({ rate: queue.rate ?? "" });
  const rate = form[0].rate.trim();
  const act = async () => {
    const control = await put(api(queue, "rate"), { rate: rate || null });
    return `${queue.name}: ${control.rate ?? "no limit"}${control.paused ? ", and it is still paused" : ""}. ${SOON}`;
  };
  return html`<${Confirm} title=${`Rate of ${queue.name}`} verb=${rate || !queue.rate ? "Set the rate" : "Lift the limit"}
    act=${act} ready=${RATE.test(rate) && Boolean(rate || queue.rate)} onClose=${onClose}>
    <p>How many jobs all its workers together may start. Now: ${queue.rate ?? "no limit"}. ${OTHERS}</p>
    <${Input} form=${form} name="rate" label="At most" hint="50/s, 90/m or 1000/h; empty: no limit" />
    ${rate.startsWith("0/") && html`<p class="notice warn">0 stops them as a pause does: jobs wait in the queue.</p>`}
    <p class="muted">It lasts until it is changed${queue.paused && ". The queue stays paused"}.</p>
  <//>`;
}
