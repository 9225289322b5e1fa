// Putting dead letters back, and deleting them.

import { html, useState } from "./vendor/preact-htm.js";
import { Confirm } from "./confirm.js";
import { Hidden } from "./dead_letters.js";
import { number, plural } from "./format.js";
import { Button, Input } from "./parts.js";
import { run, useRun } from "./run.js";

const sum = (counts) => counts.reduce((total, { count }) => total + count, 0);
const those = (errors) => (errors.length ? `those of ${errors.join(", ")}` : html`<strong>all of them</strong>`);

/** Dry first: what would be put back is counted before it can be. */
export function Redrive({ queue, errors, onClose }) {
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

export function Delete({ queue, errors, kinds, onClose }) {
  const chosen = kinds.filter((kind) => !errors.length || errors.includes(kind.error));
  const act = async (tell) => {
    const result = await run(queue, "delete", { confirm: queue, errors }, tell);
    return html`<${Counts} ...${result} done="deleted for good" count=${result.deleted} />`;
  };
  return html`<${Confirm} title=${`Delete dead letters of ${queue}?`} verb="Delete for good" danger typed=${queue}
    act=${act} onClose=${onClose}>
    <p>Deletes ${those(errors)}: <strong>${plural(sum(chosen), "job")}</strong> as of the last look, and what has come since.
      They cannot be brought back, and their payloads are gone.</p>
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
