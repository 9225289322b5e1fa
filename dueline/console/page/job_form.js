// Scheduling a job, and moving one to another time.

import { html, useMemo, useState } from "./vendor/preact-htm.js";
import { parseExact, patch, post } from "./api.js";
import { instant, seconds } from "./format.js";
import { Confirm, Field, Input, Instant, JobLink, Select } from "./parts.js";

/** The due time as parameters of the API. Throws an Error. */
const timeOf = ({ when, delay, at }) =>
  when === "at" ? { at: instant(at) } : { delay: when === "now" ? 0 : seconds(delay) };

function When({ form, choices = ["now", "after", "at"] }) {
  const [values, set] = form;
  return html`<fieldset><legend>Due</legend>
    ${choices.map((when) => html`<label key=${when}><input type="radio" name="when" checked=${values.when === when}
      onChange=${() => set({ ...values, when })} /> ${when}</label>`)}
    ${values.when === "after" && html`<${Input} form=${form} name="delay" label="Delay" hint="90, 15m, 2h or 3d" />`}
    ${values.when === "at" && html`<${Input} form=${form} name="at" label="Time" hint="In your own time zone"
      type="datetime-local" step="1" required />`}
  </fieldset>`;
}

/** The properties with these names that are not empty. */
export const pick = (from, names) => Object.fromEntries(names.flatMap((name) => (from[name] ? [[name, from[name]]] : [])));

/** The JSON in a text field. Throws an Error that says where it is wrong. */
export function readJson(text) {
  try {
    return parseExact(text);
  } catch (error) {
    throw new Error(`payload is no JSON: ${error.message}`);
  }
}

/** The field of a form's `payload`. */
export function JsonField({ form: [values, set], label = "Payload", hint = "JSON" }) {
  const shown = { hint };
  try {
    if (values.payload.trim()) readJson(values.payload);
  } catch (error) {
    shown.hint = html`<strong>${error.message}</strong>`;
  }
  return html`<${Field} label=${label} ...${shown}><textarea rows="6" value=${values.payload} spellcheck="false"
    onInput=${({ target }) => set({ ...values, payload: target.value })} /><//>`;
}

/** A header that makes retries from one dialog idempotent. */
export const useKey = () => useMemo(() => ({ "idempotency-key": `console-${crypto.randomUUID()}` }), []);

/** A dialog that schedules a job; `copy` is the job to copy. */
export function JobForm({ queue, copy, onClose }) {
  const form = useState({
    when: copy ? "now" : "after", delay: "15m", at: "", kind: copy?.kind, tenant: copy?.tenant, priority: copy?.priority ?? 1,
    key: "", if_exists: "keep", payload: copy ? JSON.stringify(copy.payload, null, 2) : "",
  });
  const [values] = form;
  const key = useKey();
  const act = async () => {
    const names = pick(values, ["kind", "tenant", ...(values.key ? ["key", "if_exists"] : [])]);
    const job = { payload: readJson(values.payload), priority: Number(values.priority), ...timeOf(values), ...names };
    const { id, due, created, moved_from: replaced } = await post(`/api/queues/${queue}/jobs`, job, key);
    const done = created ? "Scheduled" : replaced ? "Replaced the job with this key" : "Already scheduled";
    return html`${done}: <${JobLink} id=${id} />, due <${Instant} at=${due} />.`;
  };
  return html`<${Confirm} title=${copy ? "Schedule a copy" : `Schedule a job of ${queue}`} verb="Schedule"
    act=${act} onClose=${onClose} ready=${values.payload.trim() !== ""}>
    <${JsonField} form=${form} />
    <${When} form=${form} />
    <div class="filters">
      <${Input} form=${form} name="kind" label="Kind" hint="Which handler runs it; may be empty" maxlength="64" />
      <${Input} form=${form} name="tenant" label="Tenant" hint="Whose job it is; may be empty" maxlength="128" />
      <${Input} form=${form} name="key" label="Key" hint="One job has it at a time; may be empty" maxlength="255" />
      ${values.key && html`<${Select} form=${form} name="if_exists" label="If a job has it"
        options=${[["keep"], ["replace"], ["fail"]]} />`}
      <${Input} form=${form} name="priority" label="Priority" hint="1 is most urgent" type="number" min="1" max="5" />
    </div>
  <//>`;
}

/** A dialog that moves a job to another time; `now`: without a choice. */
export function MoveForm({ job, now = false, onClose }) {
  const form = useState({ when: now ? "now" : "after", delay: "1h", at: "" });
  const key = useKey();
  const act = async () => {
    const time = timeOf(form[0]);
    const moved = await patch(`/api/queues/${job.queue}/jobs/${job.id}`, time, key);
    return html`<${JobLink} id=${moved.id} /> took its place, due <${Instant} at=${moved.due} />.`;
  };
  return html`<${Confirm} title=${now ? "Run this job now?" : "Reschedule this job"}
    verb=${now ? "Run now" : "Reschedule"} act=${act} onClose=${onClose}>
    <p>It gets a new id, and is due ${now ? "at once" : "when you say"}. Its old ids, and its key, lead to it.</p>
    ${!now && html`<${When} form=${form} choices=${["after", "at"]} />`}
  <//>`;
}
