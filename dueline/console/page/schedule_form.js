// Making a schedule, or changing one, with a live preview of its rule.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ApiError, post, put, useResult } from "./api.js";
import { fieldText, instant, seconds, SPAN, span, utc, ZONE } from "./format.js";
import { JsonField, pick, readJson } from "./job_form.js";
import { Confirm, Failure, Input, Instant, Select, Table } from "./parts.js";
import { queuePath } from "./route.js";

const PAUSE_MS = 300;
const NAME = "[A-Za-z0-9_\\-][A-Za-z0-9._\\-]{0,63}";
const FRESH = {
  name: "", rule: "0 9 * * MON-FRI", zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC", payload: "null",
  jitter: 0, priority: 1, catch_up: "latest", overlap: "allow",
};
const CHANGED = "Somebody changed this schedule since you opened it. Nothing was done. Close this, and try again.";

export const ruleText = ({ cron, every }) => cron ?? `every ${every} s`;
export const ruleWords = ({ words, every }) => (every ? `Every ${span(every)}` : words);
export const schedulePath = (queue, name, ...more) => `/api${queuePath(queue, "schedules", name, ...more)}`;

/** The rule of a schedule, as parameters of the API. */
export const ruleFields = (schedule) => pick(schedule, ["cron", "every", "zone", "start", "end", "count"]);

/** Throw an error again, with an explanation where the schedule was changed meanwhile. */
export function explainConflict(error) {
  throw error.status === 412 ? new ApiError({ ...error, title: "Changed meanwhile", detail: CHANGED }) : error;
}

/** The values of the form's fields for a schedule. */
export function fieldsOf({ schedule: name, cron, every, payload, start, end, ...same }) {
  return {
    ...same, name, rule: cron ?? String(every), payload: JSON.stringify(payload, null, 2),
    start: start && fieldText(start), end: end && fieldText(end), read: { start, end },
  };
}

/** The rule of the fields, as parameters of the API. Throws an Error. */
function ruleOf({ rule, zone, start, end, count, read }) {
  // In an hour that comes twice, a field is ambiguous: one that was not edited stays the instant that it was.
  const at = (text, name) => (read?.[name] && text === fieldText(read[name]) ? read[name] : instant(text, name));
  const times = { ...(start && { start: at(start, "start") }), ...(end && { end: at(end, "end") }) };
  const form = SPAN.test(rule) ? { every: seconds(rule, "every") } : { cron: rule };
  return { ...form, zone, ...times, ...(count && { count: Number(count) }) };
}

/** The schedule as the body of a PUT: what the form has no field for stays as it was. */
export const bodyOf = (fields) => ({
  ...pick(fields, ["kind", "tenant", "owner", "catch_up", "overlap"]), ...ruleOf(fields),
  payload: readJson(fields.payload), jitter: Number(fields.jitter), priority: Number(fields.priority),
});

/** A dialog that changes a schedule as it was read, or creates one. */
export function ScheduleForm({ queue, schedule, onClose }) {
  const form = useState(() => (schedule ? fieldsOf(schedule) : FRESH));
  const [fields] = form;
  const preview = usePreview(fields);
  const act = async () => {
    const headers = schedule && { "if-match": schedule.etag };
    const made = await put(schedulePath(queue, fields.name), bodyOf(fields), headers).catch(explainConflict);
    return html`${schedule ? "Changed" : "Created"}: it takes effect after <${Instant} at=${made.effective_from} />.
      ${schedule && " Until then the old rule applies."}`;
  };
  return html`<${Confirm} title=${schedule ? `Change ${schedule.schedule}` : `New schedule of ${queue}`}
    verb=${schedule ? "Change" : "Create"} ready=${fields.name !== "" && preview.next?.length > 0}
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
  const input = (name, label, type, more) => html`<${Input} ...${{ form, name, label, type, ...more }} />`;
  const choice = (name, label, options) => html`<${Select} ...${{ form, name, label, options }} />`;
  return html`<details><summary>More</summary><div class="filters">
    ${input("start", "From, in your own time", "datetime-local", { step: 1 })}
    ${input("end", "To just before", "datetime-local", { step: 1 })}
    ${input("count", "How many runs from its start", "number", { min: 1, max: 1000 })}
    ${input("kind", "Kind: which handler runs its jobs", "text")}
    ${input("tenant", "Tenant", "text")}
    ${input("priority", "Priority", "number", { min: 1, max: 5 })}
    ${input("jitter", "Jitter in seconds", "number", { min: 0 })}
    ${choice("catch_up", "Missed runs that get a job later", [["latest"], ["none"], ["all"]])}
    ${choice("overlap", "When a run has not ended", [["allow"], ["skip"]])}
  </div></details>`;
}

/** The preview of the rule, a moment after the last key was pressed. */
function usePreview(fields) {
  const { rule, zone, start, end, count } = fields;
  const key = JSON.stringify([rule, zone, start, end, count]);
  const { data, error, start: run } = useResult(key);
  useEffect(() => {
    const load = async () => post("/api/schedules/preview", ruleOf(fields));
    const timer = setTimeout(() => run(load), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return { ...data, error, zone, every: SPAN.test(rule) && seconds(rule) };
}

function Preview({ error, next, ...rule }) {
  if (error) return html`<${Failure} error=${error} />`;
  return next && html`<p><strong>${ruleWords(rule)}</strong></p><${NextRuns} next=${next} zone=${rule.zone} />`;
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
