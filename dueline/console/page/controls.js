// Pause, resume and rate: what stops or slows a queue's workers.

import { html, useState } from "./vendor/preact-htm.js";
import { post, put } from "./api.js";
import { plural, rateWords } from "./format.js";
import { Button, Confirm, Input } from "./parts.js";
import { queuePath } from "./route.js";

const SOON = "Its workers heed that within 5 seconds.";
const OTHERS = "Consumers that do not use the library, and Lambda consumers, do not heed it.";

/** The buttons of a queue; `open` is that of a useDialog. Its dialog stays whatever row of a table these are in. */
export function Controls({ queue, open }) {
  const why = queue.error && "Nothing is known of this queue now";
  const button = (verb, Dialog, label) =>
    html`<${Button} writes why=${why} onClick=${() => open(Dialog, { queue })} label=${label}>${verb}<//>`;
  return html`<span class="row">
    ${queue.paused ? button("Resume", Resume, `Resume ${queue.name}`) : button("Pause", Pause, `Pause ${queue.name}`)}
    ${button("Rate", Rate, `Rate of ${queue.name}`)}
  </span>`;
}

const api = (queue, what) => `/api${queuePath(queue.name)}/${what}`;
const waiting = ({ waiting }) => `${plural(waiting, "job waits", "jobs wait")} in the queue`;

const switched = (queue, verb) => async () => {
  await post(api(queue, verb), {});
  return `${queue.name} is ${verb}d. ${SOON}`;
};

const Pause = ({ queue, onClose }) => html`<${Confirm} title=${`Pause ${queue.name}?`} verb="Pause"
    act=${switched(queue, "pause")} onClose=${onClose}>
    <p>Its workers end the ${plural(queue.in_flight, "job")} that they have begun, and begin no more. ${OTHERS}</p>
    <p>Jobs go on being scheduled and handed over: ${waiting(queue)} now. A pause holds until it is resumed,
      and <strong>what waits longer than SQS keeps messages (<code>message_retention_days</code>) is lost</strong>.</p>
  <//>`;

const Resume = ({ queue, onClose }) => html`<${Confirm} title=${`Resume ${queue.name}?`} verb="Resume"
    act=${switched(queue, "resume")} onClose=${onClose}>
    <p>Its workers begin jobs again: ${waiting(queue)}. Rate: ${rateWords(queue.rate)}.
      ${queue.rate?.startsWith("0/") && " At a rate of 0 they begin none until that is changed too."}
      ${queue.waiting > 0 && !queue.rate && " To spare what the jobs call, set one first."}</p>
  <//>`;

const RATE = /^(\d{1,6}\/[smh])?$/;

function Rate({ queue, onClose }) {
  const form = useState({ rate: queue.rate ?? "" });
  const rate = form[0].rate.trim();
  const act = async () => {
    const told = await put(api(queue, "rate"), { rate: rate || null });
    return `${queue.name}: ${rateWords(told.rate)}${told.paused ? ", and it is still paused" : ""}. ${SOON}`;
  };
  return html`<${Confirm} title=${`Rate of ${queue.name}`} verb=${rate ? "Set the rate" : "Lift the limit"}
    act=${act} ready=${RATE.test(rate)} onClose=${onClose}>
    <p>How many jobs all its workers together may begin. Now: ${rateWords(queue.rate)}. ${OTHERS}</p>
    <${Input} form=${form} name="rate" label="At most" hint="50/s, 90/m or 1000/h; empty: no limit" />
    ${rate.startsWith("0/") && html`<p class="notice warn">0 stops them as a pause does: jobs wait in the queue.</p>`}
    <p class="muted">It holds until it is changed${queue.paused && ". The queue is paused, and stays so"}.</p>
  <//>`;
}
