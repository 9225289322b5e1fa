// One schedule: its rule, its next runs and its last ones, and what can be done with it.

import { html, useState } from "./vendor/preact-htm.js";
import { get, post, remove, usePolled } from "./api.js";
import { plural, span } from "./format.js";
import { JsonField, readJson, useKey } from "./job_form.js";
import { Button, Confirm, Empty, Facts, Failure, Input, Instant, JobLink, State } from "./parts.js";
import { Table, Text, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";
import { NextRuns, ruleFields, ruleText, ruleWords, ScheduleForm, schedulePath, toldApart } from "./schedule_form.js";
import { RunState } from "./schedules.js";
import { STATES } from "./way.js";
import { instant } from "./when.js";

const SECONDS = 10;
const LAST = 10;
const ON_TIME_SECONDS = 60;
const MOST = 500;
const PAGE = 100;

export function Schedule({ queue, name }) {
  const path = schedulePath(queue, name);
  const load = async () => {
    const before = new Date().toISOString();
    const [schedule, history] = await Promise.all([get(path), get(`${path}/history?limit=${LAST}&before=${before}`)]);
    return { ...schedule, runs: history.runs };
  };
  const polled = usePolled(load, SECONDS, path);
  const [dialog, open] = useDialog(polled.again);
  return html`<${View} title=${name} beside=${polled.data && html`<${RunState} ...${polled.data} />`} polled=${polled}
    seconds=${SECONDS} what="the schedule">${(schedule) => html`
    <p><strong>${ruleWords(schedule)}</strong> <code>${ruleText(schedule)}</code> ${schedule.description}</p>
    <${Verbs} paused=${schedule.paused} open=${(Dialog) => open(Dialog, { queue, schedule })} />
    <section class="panel"><h2>Next runs</h2>${schedule.next.length
      ? html`<${NextRuns} ...${schedule} />`
      : html`<${Empty}>${schedule.paused ? "None while it is paused." : "None any more."}<//>`}</section>
    <section class="panel"><h2>Last runs</h2>${schedule.runs.length
      ? html`<${Table} caption="Last runs" columns=${RUNS} rows=${schedule.runs} keyOf=${({ id }) => id} />`
      : html`<${Empty}>None yet. Those that were asked for beside the rule are not told here.<//>`}</section>
    <section class="panel"><h2>Settings</h2><${Facts} facts=${facts(schedule)} /><${Text} value=${schedule.payload} />
    </section>${dialog}`}<//>`;
}

function Verbs({ paused, open }) {
  const verbs = { ...(paused ? { Resume } : { Pause }), "Run now": Run, Backfill, Change: ScheduleForm, Delete };
  return html`<p class="row">${Object.entries(verbs).map(([word, Dialog]) =>
    html`<${Button} key=${word} writes onClick=${() => open(Dialog)}>${word} …<//>`)}</p>`;
}

const RUNS = [
  { name: "name", label: "Nominal", head: true, cell: ({ nominal }) => html`<${Instant} at=${nominal} />` },
  { name: "states", label: "State",
    cell: ({ state }) => html`<${State} word=${state} tone=${STATES[state][0]} title=${STATES[state][1]} />` },
  { name: "time", label: "On time", cell: ({ lateness }) => onTime(lateness) },
  { name: "took", label: "Took", end: true,
    cell: ({ started, ended }) => ended && span((Date.parse(ended) - Date.parse(started)) / 1000) },
  { name: "attempts", label: "Attempts", end: true, cell: ({ attempts }) => attempts },
  { name: "error wrap", label: "Error", cell: ({ error }) => error && html`<code>${error}</code>` },
  { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
];

function onTime(lateness) {
  if (lateness === undefined) return html`<span class="none" title="Needs a queue with track: true">not told</span>`;
  const late = lateness > ON_TIME_SECONDS;
  return html`<${State} word=${late ? "late" : "on time"} tone=${late ? "bad" : "ok"} /> ${span(lateness)}`;
}

const at = (when) => when && html`<${Instant} at=${when} />`;

const facts = ({ zone, start, end, count, tenant, priority, jitter, owner, ...schedule }) => [
  ["Time zone", zone], ["From", at(start)], ["To just before", at(end)], ["Runs from its start", count],
  ["Tenant", tenant], ["Priority", priority], ["Jitter", span(jitter)], ["Owner", owner],
  ["Missed runs", schedule.catch_up, "Which are made up for"], ["Overlap", schedule.overlap, "Whether runs may"],
  ["Made up to", at(schedule.planned_to), "Runs up to here are made"],
  ["In effect since", at(schedule.effective_from), `Generation ${schedule.generation}`],
];

/** A dialog that changes the schedule only if it is still as it was read; `change` gets its path and that condition. */
function Change({ schedule, verb, change, told, danger, onClose, children }) {
  const { queue, schedule: name, etag } = schedule;
  const act = async () => {
    const { effective_from } = await change(schedulePath(queue, name), { "if-match": etag }).catch(toldApart);
    return html`${told} It holds after <${Instant} at=${effective_from} />: what is due before is on its way.`;
  };
  return html`<${Confirm} title=${`${verb} ${name}?`} verb=${verb} danger=${danger} act=${act} onClose=${onClose}>
    ${children}<//>`;
}

const Pause = (dialog) => html`<${Change} ...${dialog} verb="Pause" told="Paused."
  change=${(path, headers) => post(`${path}/pause`, {}, headers)}>
  <p>It makes no runs until it is resumed. What it would have made meanwhile is not caught up.</p><//>`;

const Resume = (dialog) => html`<${Change} ...${dialog} verb="Resume" told="Resumed."
  change=${(path, headers) => post(`${path}/resume`, {}, headers)}>
  <p>It makes runs again. Nothing is caught up: for what was missed, backfill it.</p><//>`;

function Delete({ schedule, onClose }) {
  const gone = (done) => (done ? location.assign(queuePath(schedule.queue, "schedules")) : onClose());
  return html`<${Change} schedule=${schedule} verb="Delete" told="Deleted." danger onClose=${gone}
    change=${(path, headers) => remove(path, undefined, headers)}>
    <p>It makes no more runs. Those that are made already still come, and its history goes with it.</p>
    ${schedule.owner && html`<p>Its owner, <code>${schedule.owner}</code>, may put it again.</p>`}<//>`;
}

function Run({ queue, schedule, onClose }) {
  const form = useState({ payload: "" });
  const key = useKey();
  const act = async () => {
    const body = form[0].payload.trim() ? { payload: readJson(form[0].payload) } : {};
    const { id } = await post(schedulePath(queue, schedule.schedule, "run"), body, key);
    return html`A job that is due now: <${JobLink} id=${id} />.`;
  };
  return html`<${Confirm} title=${`Run ${schedule.schedule} now?`} verb="Run now" act=${act} onClose=${onClose}>
    <p>Makes one job that is due now, beside the rule${schedule.paused && ", though it is paused"}. It takes no other
      run away.</p>
    <${JsonField} form=${form} label="Payload of this run" hint="JSON; empty: the schedule's own" />
  <//>`;
}

function Backfill({ queue, schedule, onClose }) {
  const [span, setSpan] = useState({ from: "", to: "" });
  const [{ runs, error, busy }, setSeen] = useState({});
  const key = useKey();
  const form = [span, (changed) => {
    setSpan(changed);
    setSeen({});
  }];
  const asked = () => ({ from: instant(span.from, "from"), to: instant(span.to, "to") });
  const count = () => {
    setSeen({ busy: true });
    preview(schedule, asked).then((runs) => setSeen({ runs }), (error) => setSeen({ error }));
  };
  const act = async () => {
    const body = asked();
    const made = await post(schedulePath(queue, schedule.schedule, "backfill"), body, key);
    return html`${plural(made.runs.length, "job")} made, due now.
      ${made.runs.slice(0, 3).map(({ id }) => html` <${JobLink} key=${id} id=${id} />`)}`;
  };
  const tooMany = runs?.length > MOST;
  return html`<${Confirm} title=${`Backfill ${schedule.schedule}?`} verb=${`Make ${plural(runs?.length ?? 0, "job")}`}
    act=${act} onClose=${onClose} ready=${runs?.length > 0 && !tooMany}>
    <p>Makes a job, due now, for each time that the rule names in a span that has passed. Those that it made then are
      not looked at.</p>
    <div class="filters">
      <${Input} form=${form} name="from" label="From" type="datetime-local" step="1" required />
      <${Input} form=${form} name="to" label="To just before" type="datetime-local" step="1" required />
    </div>
    <p><${Button} onClick=${count} busy=${busy}>Count them<//></p>
    <${Failure} error=${error} />
    ${runs && html`<p role="status"><strong>${tooMany ? `Over ${MOST}` : plural(runs.length, "run")}</strong>${
      tooMany && `: ${MOST} at a time are allowed.`}${runs.length > 0 && html`,
      the first at <${Instant} at=${runs[0].nominal} />, the last at <${Instant} at=${runs.at(-1).nominal} />`}</p>`}
  <//>`;
}

/** The runs of a rule in a span, a page at a time, as far as it takes to tell whether they are too many. */
async function preview(schedule, asked) {
  const { from, to } = asked();
  const runs = [];
  // A preview begins behind its instant, a backfill at it.
  let after = new Date(Date.parse(from) - 1).toISOString();
  while (runs.length <= MOST) {
    const { next } = await post("/api/schedules/preview", { ...ruleFields(schedule), from: after, limit: PAGE });
    const some = next.filter(({ nominal }) => nominal < to);
    runs.push(...some);
    if (some.length < PAGE) break;
    after = some.at(-1).nominal;
  }
  return runs;
}
