// Making a schedule, or changing one, with a live preview of its rule.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { Failed, post, put } from "./api.js";
import { Confirm } from "./confirm.js";
import { span } from "./format.js";
import { JsonField, readJson } from "./job_form.js";
import { Failure, Field, Instant } from "./parts.js";
import { queuePath } from "./route.js";
import { NextRuns } from "./next_runs.js";
import { fieldText, instant, seconds } from "./when.js";

const PAUSE_MS = 400;
const RULE = ["cron", "every", "zone", "start", "end", "count"];
const ASIS = ["count", "tenant", "owner", "description"];

export const ruleText = ({ cron, every }) => cron ?? `every ${every} s`;
export const ruleWords = ({ words, every }) => (every ? `Every ${span(every)}` : words);

/** The rule of a schedule that was read, as the API takes it. */
export const ruleFields = (schedule) => Object.fromEntries(RULE.filter((name) => schedule[name]).map((name) => [name, schedule[name]]));

export const schedulePath = (queue, name, ...more) => `/api${queuePath(queue, "schedules", name, ...more)}`;

/** Say what somebody else did meanwhile, where that is why something was refused. */
export function toldApart(error) {
  if (error.status !== 412) return error;
  const detail = "Somebody has changed this schedule since you opened it. Nothing was changed. Close this, look at it as it is now, and try again.";
  return new Failed({ ...error, title: "Changed meanwhile", detail });
}

/** What the form's fields hold of a schedule. */
function fieldsOf(schedule) {
  if (!schedule) return { name: "", by: "cron", cron: "0 9 * * MON-FRI", zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
    every: "15m", payload: "null", jitter: 0, priority: 1, catch_up: "latest", overlap: "allow" };
  const { schedule: name, cron = "", every, payload, start, end } = schedule;
  return { ...schedule, name, by: cron ? "cron" : "every", cron, every: String(every ?? ""), payload: JSON.stringify(payload, null, 2),
    start: start && fieldText(start), end: end && fieldText(end) };
}

/** The rule that the fields name, as the API takes it. Throws an Error. */
function ruleOf({ by, cron, zone, every, start, end, count }) {
  const times = { ...(start && { start: instant(start, "start") }), ...(end && { end: instant(end, "end") }) };
  const rule = by === "cron" ? { cron, zone } : { every: seconds(every, "every"), zone };
  return { ...rule, ...times, ...(count && { count: Number(count) }) };
}

/** The whole schedule, as the API takes it: what the form has no field for stays as it was. */
function bodyOf(fields) {
  const kept = Object.fromEntries(ASIS.filter((name) => fields[name]).map((name) => [name, fields[name]]));
  const { jitter, priority, catch_up, overlap } = fields;
  const numbers = { jitter: Number(jitter), priority: Number(priority) };
  return { ...kept, ...ruleOf(fields), payload: readJson(fields.payload), ...numbers, catch_up, overlap };
}

/** A dialog with a schedule's fields; `schedule` is the one to change, as it was read; without it, one is made. */
export function ScheduleForm({ queue, schedule, onClose }) {
  const [fields, setFields] = useState(() => fieldsOf(schedule));
  const set = (name) => ({ target }) => setFields({ ...fields, [name]: target.value });
  const preview = usePreview(fields);
  const act = async () => {
    const headers = { "if-match": schedule?.etag };
    const made = await put(schedulePath(queue, fields.name), bodyOf(fields), schedule ? headers : {}).catch((error) => {
      throw toldApart(error);
    });
    return html`${schedule ? "Changed" : "There it is"}: it serves so after <${Instant} at=${made.effective_from} />.
      ${schedule && " Up to there the old rule serves: never both, never neither."}`;
  };
  return html`<${Confirm} title=${schedule ? `Change ${schedule.schedule}` : `New schedule of ${queue}`}
    verb=${schedule ? "Change" : "Make it"} act=${act} onClose=${onClose} ready=${Boolean(fields.name && preview.next?.length)}>
    ${!schedule && html`<${Field} label="Name" hint="An existing one of this name is changed to this">
      <input value=${fields.name} onInput=${set("name")} pattern="[A-Za-z0-9_\\-][A-Za-z0-9._\\-]{0,63}" required /><//>`}
    <${RuleFields} fields=${fields} set=${set} />
    <div aria-live="polite"><${Preview} preview=${preview} /></div>
    <${JsonField} text=${fields.payload} set=${(payload) => setFields({ ...fields, payload })} hint="JSON: the payload of each run" />
    <${MoreFields} fields=${fields} set=${set} />
  <//>`;
}

function RuleFields({ fields, set }) {
  return html`<fieldset><legend>When</legend>
    ${[["cron", "a cron expression"], ["every", "every so often"]].map(([by, word]) => html`<label key=${by} class="choice">
      <input type="radio" name="by" value=${by} checked=${fields.by === by} onChange=${set("by")} /> ${word}</label>`)}
    <div class="filters">
      ${fields.by === "cron"
        ? html`<${Field} label="Rule" hint="Minute, hour, day of month, month, day of week">
            <input value=${fields.cron} onInput=${set("cron")} required spellcheck="false" /><//>
          <${Field} label="Time zone" hint="Such as Europe/Berlin"><input value=${fields.zone} onInput=${set("zone")} required /><//>`
        : html`<${Field} label="Every" hint="60 s at least: 90s, 15m, 2h or 3d"><input value=${fields.every} onInput=${set("every")} required /><//>`}
    </div>
  </fieldset>`;
}

function MoreFields({ fields, set }) {
  const input = (name, label, type, more = {}) => html`<${Field} label=${label}>
    <input type=${type} value=${fields[name] ?? ""} onInput=${set(name)} ...${more} /><//>`;
  const choice = (name, label, values) => html`<${Field} label=${label}><select onChange=${set(name)}>
    ${values.map((value) => html`<option key=${value} selected=${fields[name] === value}>${value}</option>`)}</select><//>`;
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
  const { by, cron, zone, every, start, end, count } = fields;
  useEffect(() => {
    let old = false;
    const ask = async () => setPreview(await previewed(fields).then((told) => (old ? preview : told)));
    const timer = setTimeout(ask, PAUSE_MS);
    return () => { old = true; clearTimeout(timer); };
  }, [by, cron, zone, every, start, end, count]);
  return preview;
}

async function previewed(fields) {
  try {
    const rule = ruleOf(fields);
    return { ...(await post("/api/schedules/preview", rule)), every: rule.every, zone: rule.zone };
  } catch (error) {
    return { error };
  }
}

function Preview({ preview: { error, next, ...told } }) {
  if (error) return html`<${Failure} error=${error} />`;
  if (!next) return null;
  return html`<p><strong>${ruleWords(told)}</strong></p><${NextRuns} next=${next} zone=${told.zone} />`;
}
