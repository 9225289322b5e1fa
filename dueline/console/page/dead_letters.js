// The dead letters of a queue, by error. They are read only on a click: reading hides them from others for a moment.

import { html, useState } from "./vendor/preact-htm.js";
import { Failed, get, post, usePolled } from "./api.js";
import { number, plural } from "./format.js";
import { Button, Confirm, Empty, Failure, Input, Instant, JobLink, Progress } from "./parts.js";
import { Table, Text, useDialog, View } from "./parts.js";

const SECONDS = 10;
const POLL_MS = 200;

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
    ${kinds.length > 0 && html`<${Table} caption="Dead letters by error" columns=${columns(chosen, setChosen)}
        rows=${kinds} keyOf=${(kind) => kind.error} stack />
      <p class="row"><${Button} kind="primary" onClick=${() => open(Redrive)}>Redrive ${words} …<//>
        <${Button} writes onClick=${() => open(Delete)}>Delete ${words} …<//></p>
      <h2>Samples</h2>${kinds.map((kind) => html`<${Samples} key=${kind.error} kind=${kind} />`)}`}`;
}

const Hidden = ({ count }) => html`${plural(count, "more is", "more are")} in someone else's hands, and back
  within 10 minutes.`;

const toggled = (all, one) => (all.includes(one) ? all.filter((each) => each !== one) : [...all, one]);

const columns = (chosen, setChosen) => [
  { name: "pick", label: "Choose", cell: ({ error }) => html`<input type="checkbox" aria-label=${`Choose ${error}`}
    checked=${chosen.includes(error)} onChange=${() => setChosen(toggled(chosen, error))} />` },
  { name: "name wrap", label: "Error", head: true, cell: ({ error }) => html`<code>${error}</code>` },
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

const sum = (counts) => counts.reduce((total, { count }) => total + count, 0);
const those = (errors) => (errors.length ? `those of ${errors.join(", ")}` : html`<strong>all of them</strong>`);

/** Dry first: what would be put back is counted before it can be. */
function Redrive({ queue, errors, onClose }) {
  const dry = useRun(queue, "redrive");
  const [values, set] = useState({ limit: "" });
  const change = (changed) => {
    set(changed);
    dry.clear();
  };
  const body = { errors, limit: values.limit ? Number(values.limit) : null };
  const act = async (tell) => {
    const result = await run(queue, "redrive", { ...body, apply: true }, tell);
    return html`<${Counts} ...${result} done="put back into the queue" count=${result.moved} />`;
  };
  const { wanted = 0, stay } = dry.result ?? {};
  return html`<${Confirm} title=${`Redrive dead letters of ${queue}?`} verb=${`Redrive ${plural(wanted, "job")}`}
    act=${act} onClose=${onClose} ready=${wanted > 0}>
    <p>Puts ${those(errors)} back into the queue, where workers try them again. First see how many that would be.</p>
    <${Input} form=${[values, change]} name="limit" label="At most" type="number" min="1"
      hint="Some first, to see whether they succeed now; empty: no limit" />
    <p><${Button} onClick=${() => dry.start({ ...body, apply: false })} busy=${dry.busy}>Count them, dry<//></p>
    ${dry.shown}
    ${dry.result && html`<${Counts} ...${dry.result} done="would be put back" count=${wanted - sum(stay)} />`}
  <//>`;
}

function Delete({ queue, errors, kinds, onClose }) {
  const chosen = kinds.filter((kind) => !errors.length || errors.includes(kind.error));
  const act = async (tell) => {
    const result = await run(queue, "delete", { confirm: queue, errors }, tell);
    return html`<${Counts} ...${result} done="deleted for good" count=${result.deleted} />`;
  };
  return html`<${Confirm} title=${`Delete dead letters of ${queue}?`} verb="Delete for good" danger typed=${queue}
    act=${act} onClose=${onClose}>
    <p>Deletes ${those(errors)}: <strong>${plural(sum(chosen), "job")}</strong> as of the last look, and what has come
      since. They cannot be brought back, and their payloads are gone.</p>
  <//>`;
}

function Counts({ found, hidden, stay = [], failed = [], done, count: all }) {
  return html`<ul role="status">
    <li><strong>${plural(all, "job")}</strong> ${done}, of ${number(found)} that were read.</li>
    ${stay.map(({ reason, count }) => html`<li key=${reason} class="warn">
      <strong>${number(count)} stay</strong>, for good: ${reason}</li>`)}
    ${failed.map(({ reason, count }) => html`<li key=${reason} class="bad">
      <strong>${number(count)} failed</strong> this time, try again: ${reason}</li>`)}
    ${hidden > 0 && html`<li><${Hidden} count=${hidden} /></li>`}
  </ul>`;
}

/** Begin a run, or take up the one that is under way. Return its result, or throw Failed; `tell` gets how far it is. */
async function run(queue, action, body, tell) {
  tell(html`<${Progress} what="dead letter" />`);
  const begun = await post(`/console/queues/${queue}/dead-letters/${action}`, body);
  for (;;) {
    const { state, result, error, done, of } = await get(`/console/runs/${begun.run}`);
    if (state === "done") return result;
    if (state === "failed") throw new Failed({ title: "The run failed", ...error });
    tell(html`<${Progress} done=${done} of=${of} what="dead letter" />`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Runs that are shown: {result, at, shown, busy, start(body), clear()}; `shown`: how far one is, or why it failed. */
function useRun(queue, action) {
  const [state, setState] = useState({});
  const start = async (body) => {
    try {
      const result = await run(queue, action, body, (shown) => setState((old) => ({ ...old, shown, busy: true })));
      setState({ result, at: Date.now() });
    } catch (error) {
      setState((old) => ({ ...old, busy: false, shown: html`<${Failure} error=${error} />` }));
    }
  };
  return { ...state, start, clear: () => setState({}) };
}
