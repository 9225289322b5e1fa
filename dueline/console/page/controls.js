// Pause, resume and rate: what stops or slows a queue's workers.

import { html, useState } from "./vendor/preact-htm.js";
import { post, put } from "./api.js";
import { Confirm } from "./confirm.js";
import { plural, rateWords } from "./format.js";
import { Button, Field, useDialog } from "./parts.js";
import { queuePath } from "./route.js";

const SOON = "Its workers heed that within 5 seconds.";
const OTHERS = "Consumers that do not use the library, and Lambda consumers, do not heed it.";

/** The buttons of a queue; `onDone` is called once something was changed. */
export function Controls({ queue, onDone }) {
  const [open, setOpen, close] = useDialog();
  const shut = (done) => { close(); if (done) onDone(); };
  const Asked = { pause: Pause, resume: Resume, rate: Rate }[open];
  const verb = queue.paused ? "Resume" : "Pause";
  const why = queue.error && "Nothing is known of this queue now";
  return html`<span class="controls">
    <${Button} writes why=${why} onClick=${() => setOpen(verb.toLowerCase())} label=${`${verb} ${queue.name}`}>${verb}<//>
    <${Button} writes why=${why} onClick=${() => setOpen("rate")} label=${`Rate of ${queue.name}`}>Rate<//>
    ${Asked && html`<${Asked} queue=${queue} onClose=${shut} />`}
  </span>`;
}

const api = (queue, what) => `/api${queuePath(queue.name)}/${what}`;

function Pause({ queue, onClose }) {
  const act = async () => {
    await post(api(queue, "pause"));
    return `${queue.name} is paused. ${SOON}`;
  };
  return html`<${Confirm} title=${`Pause ${queue.name}?`} verb="Pause" act=${act} onClose=${onClose}>
    <p>Its workers end the ${plural(queue.in_flight, "job")} that they have begun, and begin no more. ${OTHERS}</p>
    <p>Jobs go on being scheduled and handed over: they wait in the queue, where ${plural(queue.waiting, "job")} ${
      queue.waiting === 1 ? "waits" : "wait"} now. A pause holds until it is resumed, and <strong>what waits longer than SQS keeps
      messages (<code>message_retention_days</code>) is lost</strong>.</p>
  <//>`;
}

function Resume({ queue, onClose }) {
  const act = async () => {
    await post(api(queue, "resume"));
    return `${queue.name} is resumed. ${SOON}`;
  };
  const stopped = queue.rate?.startsWith("0/");
  return html`<${Confirm} title=${`Resume ${queue.name}?`} verb="Resume" act=${act} onClose=${onClose}>
    <p>${stopped ? "Its rate is 0, so that its workers begin no jobs until that is changed too." : "Its workers begin jobs again."}
      ${" "}${plural(queue.waiting, "job")} ${queue.waiting === 1 ? "waits" : "wait"} in the queue.</p>
    <p>Rate: ${rateWords(queue.rate)}.${queue.waiting > 0 && !queue.rate ? " To spare what the jobs call, set one first." : ""}</p>
  <//>`;
}

function Rate({ queue, onClose }) {
  const [was, wasUnit] = (queue.rate ?? "50/s").split("/");
  const [limited, setLimited] = useState(true);
  const [jobs, setJobs] = useState(was);
  const [unit, setUnit] = useState(wasUnit);
  const rate = limited ? `${Number(jobs)}/${unit}` : null;
  const ready = !limited || (/^\d{1,6}$/.test(jobs) && Number(jobs) <= 100000);
  const act = async () => {
    const told = await put(api(queue, "rate"), { rate });
    return `${queue.name}: ${rateWords(told.rate)}${told.paused ? ", and it is still paused" : ""}. ${SOON}`;
  };
  return html`<${Confirm} title=${`Rate of ${queue.name}`} verb=${limited ? "Set the rate" : "Lift the limit"} ...${{ act, ready, onClose }}>
    <p>How many jobs all its workers together may begin. Now: ${rateWords(queue.rate)}. ${OTHERS}</p>
    <${Choice} checked=${limited} onPick=${() => setLimited(true)} label="At most" />
    <div class="row"><${Field} label="Jobs, 0 to 100,000">
      <input inputmode="numeric" value=${jobs} disabled=${!limited} onInput=${(event) => setJobs(event.target.value)} /><//>
      <${Field} label="Each"><select value=${unit} disabled=${!limited} onChange=${(event) => setUnit(event.target.value)}>
        <option value="s">second</option><option value="m">minute</option><option value="h">hour</option></select><//></div>
    <${Choice} checked=${!limited} onPick=${() => setLimited(false)} label="No limit" />
    ${rate?.startsWith("0/") && html`<p class="notice warn">0 stops them as a pause does: jobs wait in the queue.</p>`}
    <p class="muted">It holds until it is changed${queue.paused ? ". The queue is paused: it begins nothing until it is resumed" : ""}.</p>
  <//>`;
}

const Choice = ({ checked, onPick, label }) => html`<label class="choice">
  <input type="radio" name="limit" checked=${checked} onChange=${onPick} /> ${label}</label>`;
