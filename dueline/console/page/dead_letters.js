// The dead letters of a queue, by error and kind. They are read only on a click: reading hides them from others for a moment.

import { html, useState } from "./vendor/preact-htm.js";
import { ApiError, get, post, useResult, usePolled } from "./api.js";
import { number, plural } from "./format.js";
import { Button, Confirm, Empty, Failure, Input, Instant, JobLink, Progress } from "./parts.js";
import { Table, Text, useDialog, View } from "./parts.js";

const SECONDS = 10;
const POLL_MS = 200;

export function DeadLetters({ queue }) {
  const polled = usePolled(() => get(`/api/queues/${queue}`), SECONDS, queue);
  const look = useRun(queue, "look", {});
  // The choice belongs to the result that it was made on.
  const [{ of, groups }, setChoice] = useState({});
  const chosen = (of === look.data && groups) || [];
  const [dialog, open] = useDialog(() => [polled.refresh, look.start].forEach((each) => each()));
  const props = { queue, groups: chosen, look: look.data };
  return html`<${View} title="Dead letters" polled=${polled} seconds=${SECONDS} what="the queue">${({ dead }) => html`
    <p><strong>${plural(dead, "job")}</strong> in the dead-letter queue, as SQS estimates.</p>
    <p><${Button} kind="primary" busy=${look.busy} onClick=${look.start}>${look.data ? "Inspect again" : "Inspect"}<//>
      <span class="muted"> Reading hides messages from everyone else for a moment, so it needs a click.</span></p>
    ${look.shown}
    ${look.data && html`<${Groups} look=${look} chosen=${chosen} open=${(Dialog) => open(Dialog, props)}
      setChosen=${(groups) => setChoice({ of: look.data, groups })} />`}
    ${dialog}`}<//>`;
}

function Groups({ look: { data: { groups, received, total, hidden }, at }, chosen, setChosen, open }) {
  const words = chosen.length ? "those chosen" : "all";
  const kinds = groups.some(({ kind }) => kind);
  return html`<h2>${kinds ? "By error and kind" : "By error"}</h2>
    <p role="status">${plural(received, "dead letter")} read <${Instant} at=${at} near />${
      received < total && `, of ${number(total)}`}. ${hidden > 0 && html`<${Hidden} count=${hidden} />`}</p>
    ${groups.length === 0 && html`<${Empty}>No dead letters were received.<//>`}
    ${groups.length > 0 && html`<${Table} caption="Dead letters by error" columns=${columns(chosen, setChosen, kinds)}
        rows=${groups} keyOf=${nameOf} stack />
      <p class="row"><${Button} kind="primary" onClick=${() => open(Redrive)}>Redrive ${words} …<//>
        <${Button} writes onClick=${() => open(Delete)}>Delete ${words} …<//></p>
      <h2>Samples</h2>${groups.map((group) => html`<${Samples} key=${nameOf(group)} group=${group} />`)}`}`;
}

const Hidden = ({ count }) => html`${plural(count, "more is", "more are")} being read by someone else, and
  visible again within 10 minutes.`;

const toggle = (all, one) => (all.includes(one) ? all.filter((each) => each !== one) : [...all, one]);

const nameOf = ({ error, kind }) => (kind ? `${error} of ${kind}` : error);

const columns = (chosen, setChosen, kinds) => [
  { name: "pick", label: "Choose", cell: (group) => html`<input type="checkbox" aria-label=${`Choose ${nameOf(group)}`}
    checked=${chosen.includes(group)} onChange=${() => setChosen(toggle(chosen, group))} />` },
  { name: "name wrap", label: "Error", head: true, cell: ({ error }) => html`<code>${error}</code>` },
  ...(kinds ? [{ name: "kind wrap", label: "Kind", cell: ({ kind }) => kind ?? "" }] : []),
  { name: "count", label: "Jobs", end: true, cell: ({ count }) => number(count) },
  { name: "first", label: "First", cell: ({ oldest }) => html`<${Instant} at=${oldest} />` },
  { name: "last", label: "Last", cell: ({ newest }) => html`<${Instant} at=${newest} />` },
];

function Samples({ group: { error, kind, count, samples } }) {
  return html`<details class="panel"><summary><code>${error}</code>${kind && ` of kind ${kind}`}
      <span class="muted"> ${samples.length} of ${number(count)}</span></summary>
    ${samples.map(({ id, reason, sent, attempts, key, tenant, trace, payload, cut, stack }, index) => html`<article key=${index}>
      <p>${id && html`<${JobLink} id=${id} /> `}<strong>${reason}</strong>
        <span class="muted"> sent <${Instant} at=${sent} />${attempts && `, ${plural(attempts, "attempt")}`}${
          key && `, key ${key}`}${tenant && `, of ${tenant}`}${trace && `, trace ${trace}`}</span></p>
      <${Text} value=${payload + (cut ? " …" : "")} label=${`Payload ${index + 1} of ${nameOf({ error, kind })}`} />
      ${stack && html`<${Text} value=${stack} label=${`Stack trace ${index + 1} of ${nameOf({ error, kind })}`} />`}
    </article>`)}</details>`;
}

const sum = (counts) => counts.reduce((total, { count }) => total + count, 0);
const groupWords = (groups) =>
  groups.length ? `those of ${groups.map(nameOf).join(", ")}` : html`<strong>all of them</strong>`;
const asSelected = (groups) => groups.map(({ error, kind = null }) => ({ error, kind }));

/** A dialog that puts dead letters back, once a dry run has counted them. */
export function Redrive({ queue, groups, onClose }) {
  const form = useState({ limit: "" });
  const body = { groups: asSelected(groups), limit: form[0].limit ? Number(form[0].limit) : null };
  const dry = useRun(queue, "redrive", { ...body, apply: false });
  const act = async (report) => {
    const result = await run(queue, "redrive", { ...body, apply: true }, report);
    return html`<${Counts} ...${result} done="put back into the queue" count=${result.moved} />`;
  };
  const { wanted = 0, stay } = dry.data ?? {};
  return html`<${Confirm} title=${`Redrive dead letters of ${queue}?`} verb=${`Redrive ${plural(wanted, "job")}`}
    act=${act} onClose=${onClose} ready=${wanted > 0}>
    <p>Puts ${groupWords(groups)} back into the queue, where workers try them again. Count them first.</p>
    <${Input} form=${form} name="limit" label="At most" type="number" min="1"
      hint="A few first, to see whether they succeed now; empty: no limit" />
    <p><${Button} onClick=${dry.start} busy=${dry.busy}>Dry run<//></p>
    ${dry.shown}
    ${dry.data && html`<${Counts} ...${dry.data} done="would be put back" count=${wanted - sum(stay)} />`}
  <//>`;
}

/** A dialog that deletes dead letters, only of the errors and kinds that were shown. */
function Delete({ queue, groups, look: { groups: shown, received, total }, onClose }) {
  const chosen = groups.length ? groups : shown;
  const act = async (report) => {
    const body = { confirm: queue, groups: asSelected(chosen) };
    const result = await run(queue, "delete", body, report);
    return html`<${Counts} ...${result} done="deleted for good" count=${result.deleted} />`;
  };
  return html`<${Confirm} title=${`Delete dead letters of ${queue}?`} verb="Delete for good" danger typed=${queue}
    act=${act} onClose=${onClose}>
    <p>Deletes ${groupWords(groups)}: <strong>${plural(sum(chosen), "job")}</strong> as inspected, and those of the
      same ${shown.some(({ kind }) => kind) ? "errors and kinds" : "errors"} that have come since. They cannot be brought back, and their payloads are gone.</p>
    ${received < total && html`<p class="warn">${number(received)} of ${number(total)} dead letters were inspected.
      Deleting reads as many at most, and leaves other errors: inspect again for the rest.</p>`}
  <//>`;
}

function Counts({ received, hidden, stay = [], failed = [], done, count: all }) {
  return html`<ul role="status">
    <li><strong>${plural(all, "job")}</strong> ${done}, of ${number(received)} read.</li>
    ${stay.map(({ reason, count }) => html`<li key=${reason} class="warn">
      <strong>${number(count)} stay</strong>: ${reason}</li>`)}
    ${failed.map(({ reason, count }) => html`<li key=${reason} class="bad">
      <strong>${number(count)} failed</strong> this time, try again: ${reason}</li>`)}
    ${hidden > 0 && html`<li><${Hidden} count=${hidden} /></li>`}
  </ul>`;
}

/** Start a run and poll it. Return its result, or throw ApiError; `report` gets how far it is. */
async function run(queue, action, body, report) {
  report(html`<${Progress} what="dead letter" />`);
  const started = await post(`/console/queues/${queue}/dead-letters/${action}`, body);
  for (;;) {
    const { state, result, error, done, of } = await get(`/console/runs/${started.run}`);
    if (state === "done") return result;
    if (state === "failed") throw new ApiError({ title: "The run failed", ...error });
    report(html`<${Progress} done=${done} of=${of} what="dead letter" />`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** A run of as of useResult, with start() and `shown`: how far it is, or why it failed. */
function useRun(queue, action, body) {
  const result = useResult(JSON.stringify([queue, action, body]));
  const shown = html`${result.progress}<${Failure} error=${result.error} />`;
  return { ...result, shown, start: () => result.start((report) => run(queue, action, body, report)) };
}
