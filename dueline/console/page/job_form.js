// Scheduling a job, and moving one to another time.

import { html, useRef, useState } from "./vendor/preact-htm.js";
import { patch, post } from "./api.js";
import { Confirm } from "./confirm.js";
import { JobLink } from "./job_link.js";
import { Field, Instant } from "./parts.js";
import { instant, seconds } from "./when.js";

const NOW = "now";

/** When: {choice: "now", "after" or "at", text}, as the API takes it. */
function timeOf({ choice, delay, at }) {
  if (choice === "at") return { at: instant(at) };
  return { delay: choice === NOW ? 0 : seconds(delay) };
}

function When({ when, set, withNow = true }) {
  const choices = [...(withNow ? [[NOW, "now"]] : []), ["after", "after"], ["at", "at"]];
  const change = (name) => ({ target }) => set({ ...when, [name]: target.value });
  return html`<fieldset><legend>Due</legend>
    ${choices.map(([choice, word]) => html`<label key=${choice} class="choice"><input type="radio" name="when"
      value=${choice} checked=${when.choice === choice} onChange=${change("choice")} /> ${word}</label>`)}
    ${when.choice === "after" && html`<${Field} label="Delay" hint="90, 15m, 2h or 3d">
      <input value=${when.delay} onInput=${change("delay")} required /><//>`}
    ${when.choice === "at" && html`<${Field} label="Time" hint="In your own time zone">
      <input type="datetime-local" step="1" value=${when.at} onInput=${change("at")} required /><//>`}
  </fieldset>`;
}

/** The JSON in a text field. Throws an Error that says where it is wrong. */
export function readJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`payload is no JSON: ${error.message}`);
  }
}

export function JsonField({ label = "Payload", text, set, hint }) {
  let wrong = "";
  try {
    if (text.trim()) JSON.parse(text);
  } catch (error) {
    wrong = `No JSON yet: ${error.message}`;
  }
  return html`<${Field} label=${label} hint=${wrong || hint || "JSON"}>
    <textarea rows="6" value=${text} spellcheck="false" aria-invalid=${Boolean(wrong)}
      onInput=${(event) => set(event.target.value)}></textarea><//>`;
}

/** A key for one thing that is asked for: the same while it is the same, so that asking again does it once. */
export function useKey() {
  const kept = useRef({});
  return (asked) => {
    const text = JSON.stringify(asked);
    if (kept.current.text !== text) kept.current = { text, key: `console-${crypto.randomUUID()}` };
    return { "idempotency-key": kept.current.key };
  };
}

/** A dialog that schedules a job; `copy` is one of which it is to be a copy. */
export function JobForm({ queue, copy = {}, onClose }) {
  const [when, setWhen] = useState({ choice: copy.id ? NOW : "after", delay: "15m", at: "" });
  const [payload, setPayload] = useState(copy.id ? JSON.stringify(copy.payload, null, 2) : "");
  const [tenant, setTenant] = useState(copy.tenant ?? "");
  const [priority, setPriority] = useState(copy.priority ?? 1);
  const keyFor = useKey();
  const act = async () => {
    const job = { payload: readJson(payload), priority: Number(priority), ...(tenant && { tenant }), ...timeOf(when) };
    const made = await post(`/api/queues/${queue}/jobs`, job, keyFor(job));
    return html`Scheduled: <${JobLink} id=${made.id} />, due <${Instant} at=${made.due} />.`;
  };
  return html`<${Confirm} title=${copy.id ? "Schedule a copy" : `Schedule a job of ${queue}`} verb="Schedule"
    act=${act} onClose=${onClose} ready=${payload.trim() !== ""}>
    <${JsonField} text=${payload} set=${setPayload} />
    <${When} when=${when} set=${setWhen} />
    <div class="filters">
      <${Field} label="Tenant" hint="Whose job it is; may be empty">
        <input value=${tenant} onInput=${(event) => setTenant(event.target.value)} maxlength="128" /><//>
      <${Field} label="Priority" hint="1 is the most urgent">
        <input type="number" min="1" max="5" value=${priority} onInput=${(event) => setPriority(event.target.value)} /><//>
    </div>
  <//>`;
}

/** A dialog that moves a job to another time; `now`: to now, without asking when. */
export function MoveForm({ job, now = false, onClose }) {
  const [when, setWhen] = useState({ choice: now ? NOW : "after", delay: "1h", at: "" });
  const keyFor = useKey();
  const act = async () => {
    const time = timeOf(when);
    const moved = await patch(`/api/queues/${job.queue}/jobs/${job.id}`, time, keyFor(time));
    return html`<${JobLink} id=${moved.id} /> took its place, due <${Instant} at=${moved.due} />. The old one never comes.`;
  };
  return html`<${Confirm} title=${now ? "Run this job now?" : "Reschedule this job"} verb=${now ? "Run now" : "Reschedule"}
    act=${act} onClose=${onClose}>
    <p>A new job with the same payload takes its place, under a new id. It is due ${now ? "at once" : "when you say"}.</p>
    ${!now && html`<${When} when=${when} set=${setWhen} withNow=${false} />`}
  <//>`;
}
