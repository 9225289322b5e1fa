// The schedules of a queue, and one schedule: its rule, its next and last runs, and the dialogs that stop or run it.

import { html } from "./vendor/preact-htm.js";
import { ApiError, get, post, remove, useKey, usePolled } from "./api.js";
import { span, utc, ZONE } from "./format.js";
import { JobState } from "./job.js";
import { Confirm, Button, Facts, Instant, JobLink, State, Table, Text, Unreadable, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";

const LIST_SECONDS = 30;
const LIST_PAGE = 50;
const MOST_PAGES = 20;
const SECONDS = 10;
const LAST_RUNS = 10;
const ON_TIME_SECONDS = 60;
const CHANGED = "Somebody changed this schedule since you opened it. Nothing was done. Close this, and try again.";

const ruleText = ({ cron, zone, every }) => (every ? `every ${span(every)}` : `${cron} ${zone}`);
const schedulePath = (queue, name, ...more) => `/api${queuePath(queue, "schedules", name, ...more)}`;

/** Throw an error again, with an explanation where the schedule was changed meanwhile. */
function explainConflict(error) {
  throw error.status === 412 ? new ApiError({ ...error, title: "Changed meanwhile", detail: CHANGED }) : error;
}

/** The schedules of a queue: {schedules, unreadable, next}, with `next` where there are more. */
export async function fetchSchedules(queue) {
  const all = { schedules: [], unreadable: 0, next: "" };
  for (let left = MOST_PAGES; left > 0 && all.next !== null; left -= 1) {
    const params = new URLSearchParams({ limit: LIST_PAGE, ...(all.next && { next: all.next }) });
    const { schedules, unreadable = 0, next } = await get(`/api/queues/${queue}/schedules?${params}`);
    all.schedules.push(...schedules);
    Object.assign(all, { unreadable: all.unreadable + unreadable, next });
  }
  return all;
}

export function Schedules({ queue }) {
  const polled = usePolled(() => fetchSchedules(queue), LIST_SECONDS, queue);
  return html`<${View} title="Schedules" polled=${polled} seconds=${LIST_SECONDS} what="schedules">
    ${({ schedules, next, unreadable }) => html`<${Unreadable} rows=${unreadable} />${next && html`<${More} queue=${queue} />`}
      <${Table} caption=${`Schedules of ${queue}`} columns=${SCHEDULE_COLUMNS} rows=${schedules} stack
        keyOf=${(each) => each.schedule} empty=${NONE} />`}<//>`;
}

const NONE = "This queue has no schedules. A schedule creates jobs by a rule, such as every day at 9.";

/** That a queue has more schedules than are listed. */
export const More = ({ queue }) => html`<p class="notice warn">There are more of ${queue} than are listed here:
  <code>dueline schedules list ${queue}</code> lists all.</p>`;

const RunState = ({ paused }) => html`<${State} word=${paused ? "paused" : "runs"} tone=${paused ? "warn" : "ok"} />`;

/** The columns of a list of schedules, the name first. */
export const SCHEDULE_COLUMNS = [
  { name: "name", label: "Schedule", head: true,
    cell: ({ queue, schedule }) => html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "rule wrap", label: "Rule", cell: (each) => html`<code>${ruleText(each)}</code>` },
  { name: "next", label: "Next run", cell: ({ next: [run], paused, zone }) => (run
    ? html`<${Instant} at=${run.scheduled_for} near /> <${Instant} at=${run.scheduled_for} zone=${zone} />`
    : html`<span class="none">${paused ? "paused" : "none any more"}</span>`) },
  { name: "states", label: "State", cell: RunState },
];

export function Schedule({ queue, name }) {
  const path = schedulePath(queue, name);
  const load = async () => {
    const before = new Date().toISOString();
    const history = `${path}/history?limit=${LAST_RUNS}&before=${before}`;
    const [schedule, { runs }] = await Promise.all([path, history].map((each) => get(each)));
    return { ...schedule, runs };
  };
  const polled = usePolled(load, SECONDS, path);
  const [dialog, open] = useDialog(polled.refresh);
  return html`<${View} title=${name} beside=${polled.data && html`<${RunState} ...${polled.data} />`} polled=${polled}
    seconds=${SECONDS} what="the schedule">${(schedule) => html`
    <p><code>${ruleText(schedule)}</code></p>
    <${Verbs} paused=${schedule.paused} open=${(Dialog) => open(Dialog, { schedule })} />
    <section class="panel"><h2>Next runs</h2>
      <${NextRuns} ...${schedule} empty=${schedule.paused ? "None while it is paused." : "None any more."} /></section>
    <section class="panel"><h2>Last runs</h2>
      <${Table} caption="Last runs" columns=${runColumns(schedule.zone)} rows=${schedule.runs} keyOf=${({ id }) => id}
        empty="None yet. Manual runs and backfills are not listed here." /></section>
    <section class="panel"><h2>Settings</h2><${Facts} facts=${facts(schedule)} /><${Text} value=${schedule.payload} />
    </section>${dialog}`}<//>`;
}

function Verbs({ paused, open }) {
  const verbs = { ...(paused ? { Resume } : { Pause }), "Run now": Run, Delete };
  return html`<p class="row">${Object.entries(verbs).map(([word, Dialog]) =>
    html`<${Button} key=${word} writes onClick=${() => open(Dialog)}>${word} …<//>`)}</p>`;
}

/** The next runs: by the reader's clock, in the schedule's zone and in UTC. */
export function NextRuns({ next, zone, empty }) {
  const columns = [
    { name: "name", label: "Your time", of: ZONE, head: true, cell: (run) => html`<${Instant} at=${run.scheduled_for} />` },
    { name: "near", label: "In", cell: (run) => html`<${Instant} at=${run.scheduled_for} near />` },
    { name: "zone", label: zone, of: zone, cell: ({ local: at }) => `${at.slice(0, 10)} ${at.slice(11, 19)} ${at.slice(19)}` },
    { name: "utc", label: "UTC", of: "UTC", cell: (run) => utc(run.scheduled_for) },
  ].filter(({ of }, index, all) => !of || all.findIndex((each) => each.of === of) === index);
  return html`<${Table} caption="Next runs" stack columns=${columns} rows=${next} empty=${empty}
    keyOf=${(run) => run.scheduled_for} />`;
}

const runColumns = (zone) => [
  { name: "name", label: "Scheduled for", head: true,
    cell: (run) => html`<${Instant} at=${run.scheduled_for} zone=${zone} />` },
  { name: "states", label: "State", cell: ({ state }) => html`<${JobState} state=${state} />` },
  { name: "time", label: "On time", cell: ({ lateness }) => onTime(lateness) },
  { name: "took", label: "Took", end: true,
    cell: ({ started, ended }) => ended && span((Date.parse(ended) - Date.parse(started)) / 1000) },
  { name: "attempts", label: "Attempts", end: true },
  { name: "error wrap", label: "Error", cell: ({ error }) => error && html`<code>${error}</code>` },
  { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
];

function onTime(lateness) {
  if (lateness === undefined) return html`<span class="none" title="Only with track: true">not recorded</span>`;
  const late = lateness > ON_TIME_SECONDS;
  return html`<${State} word=${late ? "late" : "on time"} tone=${late ? "bad" : "ok"} /> ${span(lateness)}`;
}

const at = (when, zone) => when && html`<${Instant} at=${when} zone=${zone} />`;

const facts = ({ zone, start, end, count, kind, tenant, priority, jitter, owner, ...schedule }) => [
  ["Time zone", zone], ["From", at(start, zone)], ["To just before", at(end, zone)], ["Runs from its start", count],
  ["Kind", kind], ["Tenant", tenant], ["Priority", priority], ["Jitter", span(jitter)], ["Owner", owner],
  ["Missed runs", schedule.catch_up, "Which get a job later"], ["Overlap", schedule.overlap, "Whether runs may"],
  ["Planned to", at(schedule.planned_to), "Runs up to here have their jobs"],
  ["In effect since", at(schedule.effective_from), `Generation ${schedule.generation}`],
];

/** A dialog that changes the schedule only if it is still as it was read; `change` gets its path and that condition. */
function Change({ schedule, verb, change, done, danger, onClose, children }) {
  const { queue, schedule: name, etag } = schedule;
  const act = async () => {
    const { effective_from } = await change(schedulePath(queue, name), { "if-match": etag }).catch(explainConflict);
    return html`${done} It takes effect after <${Instant} at=${effective_from} />: runs due before are on their way.`;
  };
  return html`<${Confirm} title=${`${verb} ${name}?`} verb=${verb} danger=${danger} act=${act} onClose=${onClose}>
    ${children}<//>`;
}

const Pause = (dialog) => html`<${Change} ...${dialog} verb="Pause" done="Paused."
  change=${(path, headers) => post(`${path}/pause`, {}, headers)}>
  <p>It makes no runs until it is resumed. Runs missed meanwhile are not made up for.</p><//>`;

const Resume = (dialog) => html`<${Change} ...${dialog} verb="Resume" done="Resumed."
  change=${(path, headers) => post(`${path}/resume`, {}, headers)}>
  <p>It makes runs again. Missed runs are not made up for: <code>dueline schedules backfill</code> does.</p><//>`;

export function Delete({ schedule, onClose }) {
  const gone = (done) => (done ? location.assign(queuePath(schedule.queue, "schedules")) : onClose());
  return html`<${Change} schedule=${schedule} verb="Delete" done="Deleted." danger onClose=${gone}
    change=${(path, headers) => remove(path, undefined, headers)}>
    <p>It makes no more runs. Those due within minutes still come, and those already planned for later are
      cancelled. Its history is kept, for a schedule that takes its name within 45 days.</p>
    ${schedule.owner && html`<p>Its owner, <code>${schedule.owner}</code>, may create it again.</p>`}<//>`;
}

function Run({ schedule, onClose }) {
  const { queue, schedule: name } = schedule;
  const key = useKey();
  const act = async () => {
    const { id } = await post(schedulePath(queue, name, "run"), {}, key);
    return html`A job that is due now: <${JobLink} id=${id} />.`;
  };
  return html`<${Confirm} title=${`Run ${name} now?`} verb="Run now" act=${act} onClose=${onClose}>
    <p>Creates one job that is due now, besides those of the rule${schedule.paused && ", though it is paused"}.</p>
  <//>`;
}
