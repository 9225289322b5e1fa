// The dead letters of a queue, by error. They are read only on a click: reading hides them from others for a moment.

import { html, useState } from "./vendor/preact-htm.js";
import { get } from "./api.js";
import { number, plural } from "./format.js";
import { JobLink } from "./job_link.js";
import { Button, Empty, Failure, Freshness, Age, Instant, Loading, Progress, Table, Text, useDialog } from "./parts.js";
import { Delete, LETTER, Redrive } from "./redrive.js";
import { usePolled } from "./refresh.js";
import { run } from "./run.js";

const SECONDS = 10;

export function DeadLetters({ queue }) {
  const polled = usePolled(() => get(`/api/queues/${queue}`), SECONDS, queue);
  const [look, setLook] = useState({});
  const [chosen, setChosen] = useState([]);
  const [dialog, open, close] = useDialog();
  const start = () => looked(queue, setLook).then(() => setChosen([]));
  const closed = (done) => { close(); if (done) { polled.again(); start(); } };
  const asked = { queue, errors: chosen, kinds: look.result?.kinds, onClose: closed };
  return html`<div class="view"><div class="head"><h1>Dead letters</h1><${Freshness} polled=${polled} seconds=${SECONDS} /></div>
    <${Failure} error=${polled.error} at=${polled.at} />
    ${polled.data ? html`<${Count} dead=${polled.data.dead} />` : !polled.error && html`<${Loading} />`}
    <p><${Button} kind="primary" busy=${look.run} onClick=${start}>${look.result ? "Look again" : "Look at them"}<//>
      <span class="muted"> Reading hides messages from everyone else for a moment: that is why it is done only on a click.</span></p>
    ${look.run && html`<${Progress} done=${look.run.done} of=${look.run.of} what=${LETTER} />`}
    <${Failure} error=${look.error} />
    ${look.result && html`<${Found} look=${look} chosen=${chosen} setChosen=${setChosen} open=${open} />`}
    ${dialog === "redrive" && html`<${Redrive} ...${asked} />`}
    ${dialog === "delete" && html`<${Delete} ...${asked} />`}</div>`;
}

const Count = ({ dead }) => html`<p><strong>${plural(dead, "job")}</strong> in the dead-letter queue, as SQS estimates.</p>`;

async function looked(queue, setLook) {
  setLook((old) => ({ ...old, error: null, run: { done: 0, of: null } }));
  try {
    const result = await run(queue, "look", {}, (now) => setLook((old) => ({ ...old, run: now })));
    setLook({ result, at: Date.now() });
  } catch (error) {
    setLook((old) => ({ ...old, error, run: null }));
  }
}

function Found({ look: { result, at }, chosen, setChosen, open }) {
  const { kinds, found, there, hidden } = result;
  const words = chosen.length ? "those chosen" : "all";
  const toggle = (error) => setChosen(chosen.includes(error) ? chosen.filter((one) => one !== error) : [...chosen, error]);
  return html`<section class="view"><h2>By error</h2>
    <p role="status">${plural(found, LETTER)} read <${Age} at=${at} />${found < there ? `, of ${number(there)}` : ""}.
      ${hidden > 0 && ` ${number(hidden)} more ${hidden === 1 ? "is" : "are"} hidden: in someone else's hands, back within 10 minutes.`}</p>
    ${kinds.length === 0 && html`<${Empty}>No dead letters were found.<//>`}
    ${kinds.length > 0 && html`<${Table} caption="Dead letters by error" columns=${columns(chosen, toggle)} rows=${kinds}
        keyOf=${(kind) => kind.error} stack />
      <p class="row"><${Button} kind="primary" onClick=${() => open("redrive")}>Redrive ${words} …<//>
        <${Button} writes onClick=${() => open("delete")}>Delete ${words} …<//></p>
      <h2>Samples</h2>${kinds.map((kind, i) => html`<${Samples} key=${kind.error} kind=${kind} open=${i === 0} />`)}`}
  </section>`;
}

const columns = (chosen, toggle) => [
  { name: "pick", label: "Choose", cell: ({ error }) => html`<input type="checkbox" aria-label=${`Choose ${error}`}
    checked=${chosen.includes(error)} onChange=${() => toggle(error)} />` },
  { name: "name", label: "Error", head: true, cell: ({ error }) => html`<code>${error}</code>` },
  { name: "count", label: "Jobs", end: true, cell: ({ count }) => number(count) },
  { name: "first", label: "First", cell: ({ oldest }) => html`<${Instant} at=${oldest} />` },
  { name: "last", label: "Last", cell: ({ newest }) => html`<${Instant} at=${newest} />` },
];

function Samples({ kind: { error, count, samples }, open }) {
  return html`<details class="panel" open=${open}><summary><code>${error}</code>
      <span class="muted"> ${samples.length} of ${number(count)}</span></summary>
    ${samples.map((sample, i) => html`<article key=${i} class="letter">
      <p>${sample.id && html`<${JobLink} id=${sample.id} /> `}${sample.reason && html`<strong>${sample.reason}</strong> `}
        <span class="muted">sent <${Instant} at=${sample.sent} />${sample.attempts && `, ${plural(sample.attempts, "attempt")}`}${
          sample.tenant && `, of ${sample.tenant}`}${sample.trace && `, trace ${sample.trace}`}</span></p>
      <${Text} value=${sample.payload + (sample.cut ? " …" : "")} />
    </article>`)}</details>`;
}
