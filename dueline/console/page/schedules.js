// The schedules of a queue, and one schedule: its rule, its next and last runs, and the dialogs that change it.

import { html, useState } from "./vendor/preact-htm.js";
import { get, post, remove, useResult, usePolled } from "./api.js";
import { instant, plural, span } from "./format.js";
import { JobState } from "./job.js";
import { JsonField, readJson, useKey } from "./job_form.js";
import { Button, Confirm, Facts, Failure, Input, Instant, JobLink, State } from "./parts.js";
import { Table, Text, Unreadable, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";
import { explainConflict, NextRuns, ruleFields, ruleText, ruleWords } from "./schedule_form.js";
import { ScheduleForm, schedulePath } from "./schedule_form.js";

const LIST_SECONDS = 30;
const LIST_PAGE = 50;
const MOST_EMPTY_PAGES = 20;
const SECONDS = 10;
const LAST_RUNS = 10;
const ON_TIME_SECONDS = 60;
const MOST_RUNS = 500;
const RUNS_PAGE = 100;

/** A page of schedules after a name. Pages of deleted ones are empty, and skipped. */
export async function fetchSchedules(queue, after) {
  let page = { next: after };
  const isEmpty = () => !page.schedules?.length && !page.unreadable && page.next !== null;
  for (let left = MOST_EMPTY_PAGES; left > 0 && isEmpty(); left -= 1) {
    const params = new URLSearchParams({ limit: LIST_PAGE, ...(page.next && { next: page.next }) });
    page = await get(`/api/queues/${queue}/schedules?${params}`);
  }
  return page;
}

export function Schedules({ queue, query: { next = "" } }) {
  const polled = usePolled(() => fetchSchedules(queue, next), LIST_SECONDS, `${queue} ${next}`);
  const [dialog, open] = useDialog(polled.refresh);
  const above = html`<p class="row">
    <${Button} kind="primary" writes onClick=${() => open(ScheduleForm, { queue })}>New schedule …<//></p>${dialog}`;
  return html`<${View} title="Schedules" above=${above} polled=${polled} seconds=${LIST_SECONDS} what="schedules">
    ${({ schedules, next: more, unreadable }) => html`<${Unreadable} rows=${unreadable} />
      <${Table} caption=${`Schedules of ${queue}`} columns=${SCHEDULE_COLUMNS} rows=${schedules} stack
        keyOf=${(each) => each.schedule} empty=${more || unreadable ? "No schedule to show up to here." : NONE} />
      ${more && html`<p><a href=${`?${new URLSearchParams({ next: more })}`}>The next ones</a></p>`}`}<//>`;
}

const NONE = "This queue has no schedules. A schedule creates jobs by a rule, such as every day at 9.";

const RunState = ({ paused }) => html`<${State} word=${paused ? "paused" : "runs"} tone=${paused ? "warn" : "ok"} />`;

/** The columns of a list of schedules, the name first. */
export const SCHEDULE_COLUMNS = [
  { name: "name", label: "Schedule", head: true,
    cell: ({ queue, schedule }) => html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "rule wrap", label: "Rule", cell: (each) => html`${ruleWords(each)}<br /><code>${ruleText(each)}</code>` },
  { name: "zone", label: "Zone" },
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
    <p><strong>${ruleWords(schedule)}</strong> <code>${ruleText(schedule)}</code></p>
    <${Verbs} paused=${schedule.paused} open=${(Dialog) => open(Dialog, { queue, schedule })} />
    <section class="panel"><h2>Next runs</h2>
      <${NextRuns} ...${schedule} empty=${schedule.paused ? "None while it is paused." : "None any more."} /></section>
    <section class="panel"><h2>Last runs</h2>
      <${Table} caption="Last runs" columns=${runColumns(schedule.zone)} rows=${schedule.runs} keyOf=${({ id }) => id}
        empty="None yet. Manual runs and backfills are not listed here." /></section>
    <section class="panel"><h2>Settings</h2><${Facts} facts=${facts(schedule)} /><${Text} value=${schedule.payload} />
    </section>${dialog}`}<//>`;
}

function Verbs({ paused, open }) {
  const verbs = { ...(paused ? { Resume } : { Pause }), "Run now": Run, Backfill, Change: ScheduleForm, Delete };
  return html`<p class="row">${Object.entries(verbs).map(([word, Dialog]) =>
    html`<${Button} key=${word} writes onClick=${() => open(Dialog)}>${word} …<//>`)}</p>`;
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
  <p>It makes runs again. Missed runs are not made up for: backfill them.</p><//>`;

export function Delete({ schedule, onClose }) {
  const gone = (done) => (done ? location.assign(queuePath(schedule.queue, "schedules")) : onClose());
  return html`<${Change} schedule=${schedule} verb="Delete" done="Deleted." danger onClose=${gone}
    change=${(path, headers) => remove(path, undefined, headers)}>
    <p>It makes no more runs. Those due within minutes still come, and those already planned for later are
      cancelled. Its history is kept, for a schedule that takes its name within 45 days.</p>
    ${schedule.owner && html`<p>Its owner, <code>${schedule.owner}</code>, may create it again.</p>`}<//>`;
}

function Run({ schedule, onClose }) {
  const form = useState({ payload: "" });
  const key = useKey();
  const act = async () => {
    const body = form[0].payload.trim() ? { payload: readJson(form[0].payload) } : {};
    const { id } = await post(schedulePath(schedule.queue, schedule.schedule, "run"), body, key);
    return html`A job that is due now: <${JobLink} id=${id} />.`;
  };
  return html`<${Confirm} title=${`Run ${schedule.schedule} now?`} verb="Run now" act=${act} onClose=${onClose}>
    <p>Creates one job that is due now, besides those of the rule${schedule.paused && ", though it is paused"}.</p>
    <${JsonField} form=${form} label="Payload of this run" hint="JSON; empty: the schedule's own" />
  <//>`;
}

export function Backfill({ schedule, onClose }) {
  const form = useState({ from: "", to: "" });
  const [span] = form;
  const { data: runs, error, busy, start } = useResult(JSON.stringify(span));
  const key = useKey();
  const bounds = () => ({ from: instant(span.from, "from"), to: instant(span.to, "to") });
  const act = async () => {
    const made = await post(schedulePath(schedule.queue, schedule.schedule, "backfill"), bounds(), key);
    return html`${plural(made.runs.length, "job")} created, due now.
      ${made.runs.slice(0, 3).map(({ id }) => html` <${JobLink} key=${id} id=${id} />`)}`;
  };
  const tooMany = runs?.length > MOST_RUNS;
  return html`<${Confirm} title=${`Backfill ${schedule.schedule}?`} verb=${runs ? `Create ${plural(runs.length, "job")}` : "Create the jobs"}
    act=${act} onClose=${onClose} ready=${runs?.length > 0 && !tooMany}>
    <p>Creates a job, due now, for each run of the rule in a past span, whether or not that run had one.</p>
    <div class="filters">
      <${Input} form=${form} name="from" label="From" type="datetime-local" step="1" required />
      <${Input} form=${form} name="to" label="To just before" type="datetime-local" step="1" required />
    </div>
    <p><${Button} onClick=${() => start(() => preview(schedule, bounds))} busy=${busy}>Count them<//></p>
    <${Failure} error=${error} />
    ${runs && html`<p role="status"><strong>${tooMany ? `Over ${MOST_RUNS}` : plural(runs.length, "run")}</strong>${
      tooMany && `: ${MOST_RUNS} at a time are allowed.`}${runs.length > 0 && html`,
      the first at <${Instant} at=${runs[0].scheduled_for} zone=${schedule.zone} />,
      the last at <${Instant} at=${runs.at(-1).scheduled_for} zone=${schedule.zone} />`}</p>`}
  <//>`;
}

/** The runs of a rule in a span, up to one more than are allowed. */
async function preview(schedule, bounds) {
  const { from, to } = bounds();
  const runs = [];
  // A preview begins after its instant, a backfill at it.
  let after = new Date(Date.parse(from) - 1).toISOString();
  while (runs.length <= MOST_RUNS) {
    const { next } = await post("/api/schedules/preview", { ...ruleFields(schedule), from: after, limit: RUNS_PAGE });
    const some = next.filter(({ scheduled_for }) => scheduled_for < to);
    runs.push(...some);
    if (some.length < RUNS_PAGE) break;
    after = some.at(-1).scheduled_for;
  }
  return runs;
}
