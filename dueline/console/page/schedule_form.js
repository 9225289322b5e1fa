// Making a schedule, or changing one, with a live preview of its rule.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { Failed, post, put } from "./api.js";
import { span, utc } from "./format.js";
import { JsonField, readJson } from "./job_form.js";
import { Confirm, Failure, Field, Input, Instant, Table } from "./parts.js";
import { queuePath } from "./route.js";
import { fieldText, instant, seconds, SPAN } from "./when.js";

const PAUSE_MS = 300;
const NAME = "[A-Za-z0-9_\\-][A-Za-z0-9._\\-]{0,63}";
const FRESH = {
  name: "", rule: "0 9 * * MON-FRI", zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC", payload: "null",
  jitter: 0, priority: 1, catch_up: "latest", overlap: "allow",
};
const CHANGED = "Somebody changed this schedule since you opened it. Nothing was changed. Close this, and try again.";

export const ruleText = ({ cron, every }) => cron ?? `every ${every} s`;
export const ruleWords = ({ words, every }) => (every ? `Every ${span(every)}` : words);
export const schedulePath = (queue, name, ...more) => `/api${queuePath(queue, "schedules", name, ...more)}`;

/** What of an object has one of these names and holds something. */
const picked = (from, names) => Object.fromEntries(names.flatMap((name) => (from[name] ? [[name, from[name]]] : [])));

/** The rule of a schedule that was read, as the API takes it. */
export const ruleFields = (schedule) => picked(schedule, ["cron", "every", "zone", "start", "end", "count"]);

/** Say what somebody else did meanwhile, where that is why something was refused. */
export function toldApart(error) {
  throw error.status === 412 ? new Failed({ ...error, title: "Changed meanwhile", detail: CHANGED }) : error;
}

/** What the form's fields hold of a schedule. */
function fieldsOf({ schedule: name, cron, every, payload, start, end, ...same }) {
  return {
    ...same, name, rule: cron ?? String(every), payload: JSON.stringify(payload, null, 2),
    start: start && fieldText(start), end: end && fieldText(end),
  };
}

/** The rule that the fields name, as the API takes it. Throws an Error. */
function ruleOf({ rule, zone, start, end, count }) {
  const times = { ...(start && { start: instant(start, "start") }), ...(end && { end: instant(end, "end") }) };
  const form = SPAN.test(rule) ? { every: seconds(rule, "every") } : { cron: rule };
  return { ...form, zone, ...times, ...(count && { count: Number(count) }) };
}

/** The whole schedule, as the API takes it: what the form has no field for stays as it was. */
const bodyOf = (fields) => ({
  ...picked(fields, ["tenant", "owner", "description", "catch_up", "overlap"]), ...ruleOf(fields),
  payload: readJson(fields.payload), jitter: Number(fields.jitter), priority: Number(fields.priority),
});

/** A dialog with a schedule's fields; `schedule` is the one to change, as it was read; without it, one is made. */
export function ScheduleForm({ queue, schedule, onClose }) {
  const form = useState(() => (schedule ? fieldsOf(schedule) : FRESH));
  const [fields] = form;
  const preview = usePreview(fields);
  const act = async () => {
    const headers = schedule && { "if-match": schedule.etag };
    const made = await put(schedulePath(queue, fields.name), bodyOf(fields), headers).catch(toldApart);
    return html`${schedule ? "Changed" : "There it is"}: it serves so after <${Instant} at=${made.effective_from} />.
      ${schedule && " Up to there the old rule serves: never both, never neither."}`;
  };
  return html`<${Confirm} title=${schedule ? `Change ${schedule.schedule}` : `New schedule of ${queue}`}
    verb=${schedule ? "Change" : "Make it"} ready=${fields.name !== "" && preview.next?.length > 0}
    act=${act} onClose=${onClose}>
    ${!schedule && html`<${Input} form=${form} name="name" label="Name" pattern=${NAME} required
      hint="An existing one of this name is changed to this" />`}
    <div class="filters">
      <${Input} form=${form} name="rule" label="Rule" required
        hint="Minute, hour, day of month, month, day of week; or every 90s, 15m, 2h or 3d" />
      <${Input} form=${form} name="zone" label="Time zone" hint="Such as Europe/Berlin" required />
    </div>
    <div aria-live="polite"><${Preview} ...${preview} /></div>
    <${JsonField} form=${form} hint="JSON: the payload of each run" />
    <${More} form=${form} />
  <//>`;
}

function More({ form }) {
  const [fields, set] = form;
  const input = (name, label, type, more) => html`<${Input} ...${{ form, name, label, type, ...more }} />`;
  const choice = (name, label, values) => html`<${Field} label=${label}>
    <select value=${fields[name]} onChange=${({ target }) => set({ ...fields, [name]: target.value })}>
      ${values.map((value) => html`<option key=${value}>${value}</option>`)}</select><//>`;
  return html`<details><summary>More</summary><div class="filters">
    ${input("start", "From, in your own time", "datetime-local", { step: 1 })}
    ${input("end", "To just before", "datetime-local", { step: 1 })}
    ${input("count", "How many runs from its start", "number", { min: 1, max: 1000 })}
    ${input("tenant", "Tenant", "text")}
    ${input("priority", "Priority", "number", { min: 1, max: 5 })}
    ${input("jitter", "Jitter in seconds", "number", { min: 0 })}
    ${choice("catch_up", "Missed runs to make up for", ["latest", "none", "all"])}
    ${choice("overlap", "When a run has not ended", ["allow", "skip"])}
    ${input("description", "What it is for", "text")}
  </div></details>`;
}

/** What the API says of the rule, a moment after the last key was pressed. */
function usePreview(fields) {
  const [preview, setPreview] = useState({});
  const { rule, zone, start, end, count } = fields;
  useEffect(() => {
    let old = false;
    const tell = (told) => old || setPreview(told);
    const ask = async () => post("/api/schedules/preview", ruleOf(fields));
    const timer = setTimeout(() => ask().then(tell, (error) => tell({ error })), PAUSE_MS);
    return () => {
      old = true;
      clearTimeout(timer);
    };
  }, [rule, zone, start, end, count]);
  return { ...preview, zone, every: SPAN.test(rule) && seconds(rule) };
}

function Preview({ error, next, ...told }) {
  if (error) return html`<${Failure} error=${error} />`;
  return next && html`<p><strong>${ruleWords(told)}</strong></p><${NextRuns} next=${next} zone=${told.zone} />`;
}

/** Runs to come: by the reader's clock, in the schedule's zone and in UTC, with what a change of the clock does. */
export function NextRuns({ next, zone }) {
  const columns = [
    { name: "name", label: "Your time", head: true, cell: ({ nominal }) => html`<${Instant} at=${nominal} />` },
    { name: "near", label: "In", cell: ({ nominal }) => html`<${Instant} at=${nominal} near />` },
    { name: "zone", label: zone, cell: ({ local: at }) => `${at.slice(0, 10)} ${at.slice(11, 19)} ${at.slice(19)}` },
    { name: "utc", label: "UTC", cell: ({ nominal }) => utc(nominal) },
    { name: "clock wrap", label: "Clock", cell: ({ clock }) => clock && html`<strong>${clock}</strong>` },
  ].filter(({ label }, index, all) => label !== all[index + 1]?.label);
  return html`<${Table} caption="Next runs" columns=${columns} rows=${next} keyOf=${({ nominal }) => nominal} />`;
}
