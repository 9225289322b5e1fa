// One schedule: its rule, its next runs and its last ones, and what can be done with it.

import { html, useState } from "./vendor/preact-htm.js";
import { get, post, remove } from "./api.js";
import { Backfill } from "./backfill.js";
import { Confirm } from "./confirm.js";
import { span } from "./format.js";
import { JobLink } from "./job_link.js";
import { JsonField, readJson, useKey } from "./job_form.js";
import { NextRuns } from "./next_runs.js";
import { Button, Empty, Facts, Failure, Freshness, Instant, Loading, State, Table, Text, useDialog } from "./parts.js";
import { usePolled } from "./refresh.js";
import { navigate, queuePath } from "./route.js";
import { ruleText, ruleWords, ScheduleForm, schedulePath, toldApart } from "./schedule_form.js";
import { STATES } from "./way.js";

const SECONDS = 10;
const LAST = 10;
const ON_TIME_SECONDS = 60;

export function Schedule({ queue, name }) {
  const path = schedulePath(queue, name);
  const load = async () => {
    const [schedule, { runs }] = await Promise.all([get(path), get(`${path}/history?limit=${LAST}&before=${new Date().toISOString()}`)]);
    return { ...schedule, runs };
  };
  const polled = usePolled(load, SECONDS, path);
  const [dialog, open, close] = useDialog();
  const schedule = polled.data;
  if (!schedule) return html`<h1>${name}</h1><${Loading} error=${polled.error} what="the schedule" />`;
  const closed = () => { close(); polled.again(); };
  return html`<div class="view"><div class="head"><h1>${name}</h1>
      <${State} word=${schedule.paused ? "paused" : "runs"} tone=${schedule.paused ? "warn" : "ok"} />
      <${Freshness} polled=${polled} seconds=${SECONDS} /></div>
    <${Failure} error=${polled.error} at=${polled.at} />
    <p><strong>${ruleWords(schedule)}</strong> <code>${ruleText(schedule)}</code> ${schedule.description}</p>
    <${Verbs} schedule=${schedule} open=${(what) => open({ what, schedule })} />
    <section class="panel"><h2>Next runs</h2>${schedule.next.length ? html`<${NextRuns} ...${schedule} />`
      : html`<${Empty}>${schedule.paused ? "None while it is paused." : "None any more."}<//>`}</section>
    <section class="panel"><h2>Last runs</h2>${schedule.runs.length ? html`<${LastRuns} runs=${schedule.runs} />`
      : html`<${Empty}>None yet. Those that were asked for beside the rule are not told here.<//>`}</section>
    <section class="panel"><h2>Settings</h2><${Facts} facts=${facts(schedule)} /><${Text} value=${schedule.payload} /></section>
    ${dialog && html`<${DIALOGS[dialog.what]} queue=${queue} schedule=${dialog.schedule} onClose=${closed} />`}</div>`;
}

function Verbs({ schedule: { paused }, open }) {
  const verbs = [
    [paused ? "Resume" : "Pause", paused ? "resume" : "pause"], ["Run now", "run"], ["Backfill", "backfill"], ["Change", "change"],
  ];
  return html`<p class="row">${verbs.map(([word, what]) => html`<${Button} key=${what} writes onClick=${() => open(what)}>${word} …<//>`)}
    <${Button} writes onClick=${() => open("delete")}>Delete …<//></p>`;
}

function LastRuns({ runs }) {
  const columns = [
    { name: "name", label: "Nominal", head: true, cell: ({ nominal }) => html`<${Instant} at=${nominal} />` },
    { name: "states", label: "State", cell: ({ state }) =>
      html`<${State} word=${state} tone=${STATES[state][0]} title=${STATES[state][1]} />` },
    { name: "time", label: "On time", cell: ({ lateness }) => onTime(lateness) },
    { name: "took", label: "Took", end: true, cell: ({ started, ended }) => ended && span((Date.parse(ended) - Date.parse(started)) / 1000) },
    { name: "attempts", label: "Attempts", end: true, cell: ({ attempts }) => attempts },
    { name: "error wrap", label: "Error", cell: ({ error }) => error && html`<code>${error}</code>` },
    { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
  ];
  return html`<${Table} caption="Last runs" columns=${columns} rows=${runs} keyOf=${({ id }) => id} />`;
}

function onTime(lateness) {
  if (lateness === undefined) return html`<span class="none" title="Told only of queues with track: true">not told</span>`;
  const late = lateness > ON_TIME_SECONDS;
  return html`<${State} word=${late ? "late" : "on time"} tone=${late ? "bad" : "ok"} /> <span class="muted">${span(lateness)}</span>`;
}

function facts({ zone, start, end, count, tenant, priority, jitter, catch_up, overlap, owner, planned_to, effective_from, generation }) {
  const at = (instant) => html`<${Instant} at=${instant} />`;
  return [
    ["Time zone", zone], ...(start ? [["From", at(start)]] : []), ...(end ? [["To just before", at(end)]] : []),
    ...(count ? [["Runs from its start", count]] : []),
    ["Tenant", tenant], ["Priority", priority], ["Jitter", span(jitter)], ["Missed runs", catch_up, "Which are made up for"],
    ["Overlap", overlap, "Whether runs may overlap"], ["Owner", owner], ["Made up to", at(planned_to), "Runs up to here are made"],
    ["In effect since", at(effective_from), `Generation ${generation}`],
  ];
}

/** A dialog that changes the schedule only if it is still as it was read. */
function Change({ title, verb, danger, children, act, told, onClose }) {
  const asked = async () => {
    const { effective_from } = await act().catch((error) => { throw toldApart(error); });
    return html`${told} It holds after <${Instant} at=${effective_from} />: what is due before is on its way.`;
  };
  return html`<${Confirm} title=${title} verb=${verb} danger=${danger} act=${asked} onClose=${onClose}>${children}<//>`;
}

const ifAs = ({ etag }) => ({ "if-match": etag });
const changed = (schedule, what) => post(schedulePath(schedule.queue, schedule.schedule, what), {}, ifAs(schedule));

const Pause = ({ schedule, onClose }) => html`<${Change} title=${`Pause ${schedule.schedule}?`} verb="Pause" told="Paused."
  act=${() => changed(schedule, "pause")} onClose=${onClose}><p>It makes no runs until it is resumed. What it would have made
  meanwhile is not caught up.</p><//>`;

const Resume = ({ schedule, onClose }) => html`<${Change} title=${`Resume ${schedule.schedule}?`} verb="Resume" told="Resumed."
  act=${() => changed(schedule, "resume")} onClose=${onClose}><p>It makes runs again. Nothing is caught up: for what was missed,
  backfill it.</p><//>`;

function Delete({ schedule, onClose }) {
  const act = () => remove(schedulePath(schedule.queue, schedule.schedule), ifAs(schedule));
  const gone = (done) => (done ? navigate(queuePath(schedule.queue, "schedules")) : onClose());
  return html`<${Change} title=${`Delete ${schedule.schedule}?`} verb="Delete" danger told="Deleted." act=${act} onClose=${gone}>
    <p>It makes no more runs. Those that are made already still come, and its history goes with it.</p>
    ${schedule.owner && html`<p>Its owner, <code>${schedule.owner}</code>, may put it again.</p>`}<//>`;
}

function Run({ queue, schedule, onClose }) {
  const [payload, setPayload] = useState("");
  const keyFor = useKey();
  const act = async () => {
    const body = payload.trim() ? { payload: readJson(payload) } : {};
    const { id } = await post(schedulePath(queue, schedule.schedule, "run"), body, keyFor(body));
    return html`A job that is due now: <${JobLink} id=${id} />.`;
  };
  return html`<${Confirm} title=${`Run ${schedule.schedule} now?`} verb="Run now" act=${act} onClose=${onClose}>
    <p>Makes one job that is due now, beside the rule${schedule.paused ? ", though it is paused" : ""}. It takes no other run away.</p>
    <${JsonField} label="Payload of this run" text=${payload} set=${setPayload} hint="JSON; empty: the schedule's own" />
  <//>`;
}

const DIALOGS = { pause: Pause, resume: Resume, run: Run, backfill: Backfill, change: ScheduleForm, delete: Delete };
