// The dead letters of a queue, by error. They are read only on a click: reading hides them from others for a moment.

import { html, useState } from "./vendor/preact-htm.js";
import { get } from "./api.js";
import { number, plural } from "./format.js";
import { Button, Empty, Instant, JobLink, Table, Text, useDialog, View } from "./parts.js";
import { Delete, Redrive } from "./redrive.js";
import { usePolled } from "./refresh.js";
import { useRun } from "./run.js";

const SECONDS = 10;

export function DeadLetters({ queue }) {
  const polled = usePolled(() => get(`/api/queues/${queue}`), SECONDS, queue);
  const look = useRun(queue, "look");
  const [chosen, setChosen] = useState([]);
  const start = () => look.start({}).then(() => setChosen([]));
  const [dialog, open] = useDialog(() => {
    polled.again();
    start();
  });
  const asked = { queue, errors: chosen, kinds: look.result?.kinds };
  return html`<${View} title="Dead letters" polled=${polled} seconds=${SECONDS} what="the queue">${({ dead }) => html`
    <p><strong>${plural(dead, "job")}</strong> in the dead-letter queue, as SQS estimates.</p>
    <p><${Button} kind="primary" busy=${look.busy} onClick=${start}>${look.result ? "Look again" : "Look at them"}<//>
      <span class="muted"> Reading hides messages from everyone else for a moment: that is why it is done only on a
        click.</span></p>
    ${look.shown}
    ${look.result && html`<${Found} look=${look} chosen=${chosen} setChosen=${setChosen}
      open=${(Dialog) => open(Dialog, asked)} />`}
    ${dialog}`}<//>`;
}

function Found({ look: { result, at }, chosen, setChosen, open }) {
  const { kinds, found, there, hidden } = result;
  const words = chosen.length ? "those chosen" : "all";
  return html`<h2>By error</h2>
    <p role="status">${plural(found, "dead letter")} read <${Instant} at=${at} near />${
      found < there && `, of ${number(there)}`}. ${hidden > 0 && html`<${Hidden} count=${hidden} />`}</p>
    ${kinds.length === 0 && html`<${Empty}>No dead letters were found.<//>`}
    ${kinds.length > 0 && html`<${Table} caption="Dead letters by error" columns=${columns(chosen, setChosen)} rows=${kinds}
        keyOf=${(kind) => kind.error} stack />
      <p class="row"><${Button} kind="primary" onClick=${() => open(Redrive)}>Redrive ${words} …<//>
        <${Button} writes onClick=${() => open(Delete)}>Delete ${words} …<//></p>
      <h2>Samples</h2>${kinds.map((kind) => html`<${Samples} key=${kind.error} kind=${kind} />`)}`}`;
}

export const Hidden = ({ count }) => html`${plural(count, "more is", "more are")} in someone else's hands, and back
  within 10 minutes.`;

const toggled = (all, one) => (all.includes(one) ? all.filter((each) => each !== one) : [...all, one]);

const columns = (chosen, setChosen) => [
  { name: "pick", label: "Choose", cell: ({ error }) => html`<input type="checkbox" aria-label=${`Choose ${error}`}
    checked=${chosen.includes(error)} onChange=${() => setChosen(toggled(chosen, error))} />` },
  { name: "name", label: "Error", head: true, cell: ({ error }) => html`<code>${error}</code>` },
  { name: "count", label: "Jobs", end: true, cell: ({ count }) => number(count) },
  { name: "first", label: "First", cell: ({ oldest }) => html`<${Instant} at=${oldest} />` },
  { name: "last", label: "Last", cell: ({ newest }) => html`<${Instant} at=${newest} />` },
];

function Samples({ kind: { error, count, samples } }) {
  return html`<details class="panel"><summary><code>${error}</code>
      <span class="muted"> ${samples.length} of ${number(count)}</span></summary>
    ${samples.map(({ id, reason, sent, attempts, tenant, trace, payload, cut }, index) => html`<article key=${index}>
      <p>${id && html`<${JobLink} id=${id} /> `}<strong>${reason}</strong>
        <span class="muted"> sent <${Instant} at=${sent} />${attempts && `, ${plural(attempts, "attempt")}`}${
          tenant && `, of ${tenant}`}${trace && `, trace ${trace}`}</span></p>
      <${Text} value=${payload + (cut ? " …" : "")} label=${`Payload ${index + 1} of ${error}`} />
    </article>`)}</details>`;
}
