// Putting dead letters back, and deleting them.

import { html, useState } from "./vendor/preact-htm.js";
import { Confirm } from "./confirm.js";
import { number, plural } from "./format.js";
import { Button, Failure, Field, Progress } from "./parts.js";
import { run } from "./run.js";

export const LETTER = "dead letter";

const told = (run) => html`<${Progress} done=${run.done} of=${run.of} what=${LETTER} />`;
const those = (errors) => (errors.length
  ? html`those of ${errors.map((one, i) => html`${i ? ", " : ""}<code key=${one}>${one}</code>`)}`
  : html`<strong>all of them</strong>`);

/** Dry first: what would be put back is counted before it can be. */
export function Redrive({ queue, errors, onClose }) {
  const [limit, setLimit] = useState("");
  const [dry, setDry] = useState({});
  const body = { errors, limit: limit ? Number(limit) : null };
  const count = async () => {
    setDry({ run: { done: 0, of: null } });
    const ask = run(queue, "redrive", { ...body, apply: false }, (now) => setDry({ run: now }));
    setDry(await ask.then((result) => ({ result }), (error) => ({ error })));
  };
  const act = async (tell) => {
    const result = await run(queue, "redrive", { ...body, apply: true }, (now) => tell(told(now)));
    return html`<${Counts} result=${result} done="put back into the queue" count=${result.moved} />`;
  };
  const wanted = dry.result?.wanted ?? 0;
  return html`<${Confirm} title=${`Redrive dead letters of ${queue}?`} verb=${`Redrive ${plural(wanted, "job")}`}
    act=${act} onClose=${onClose} ready=${wanted > 0}>
    <p>Puts ${those(errors)} back into the queue, where workers try them again. First see how many that would be.</p>
    <${Field} label="At most" hint="Some first, to see whether they succeed now; empty: no limit">
      <input type="number" min="1" value=${limit} onInput=${({ target }) => { setLimit(target.value); setDry({}); }} /><//>
    <p><${Button} onClick=${count} busy=${dry.run}>Count them, dry<//></p>
    ${dry.run && told(dry.run)}
    <${Failure} error=${dry.error} />
    ${dry.result && html`<${Counts} result=${dry.result} done="would be put back" count=${wanted - sum(dry.result.stay)} />`}
  <//>`;
}

export function Delete({ queue, errors, kinds, onClose }) {
  const chosen = kinds.filter((kind) => !errors.length || errors.includes(kind.error));
  const act = async (tell) => {
    const result = await run(queue, "delete", { confirm: queue, errors }, (now) => tell(told(now)));
    return html`<${Counts} result=${result} done="deleted for good" count=${result.deleted} />`;
  };
  return html`<${Confirm} title=${`Delete dead letters of ${queue}?`} verb="Delete for good" danger typed=${queue}
    act=${act} onClose=${onClose}>
    <p>Deletes ${those(errors)}: <strong>${plural(sum(chosen), "job")}</strong> as of the last look, and what has come since.
      They cannot be brought back, and their payloads are gone.</p>
  <//>`;
}

const sum = (counts) => counts.reduce((total, { count }) => total + count, 0);

function Counts({ result: { found, hidden, stay = [], failed = [] }, done, count }) {
  return html`<ul class="list" role="status">
    <li><strong>${plural(count, "job")}</strong> ${done}, of ${number(found)} that were read.</li>
    ${stay.map(({ reason, count }) => html`<li key=${reason}><strong>${number(count)} stay</strong>, for good: ${reason}</li>`)}
    ${failed.map(({ reason, count }) => html`<li key=${reason}><strong>${number(count)} failed</strong> this time, try again: ${reason}</li>`)}
    ${hidden > 0 && html`<li>${number(hidden)} were in someone else's hands: they are back within 10 minutes.</li>`}
  </ul>`;
}
