// The dead letters of a queue, by error and kind, and one by one. They are read only on a click: reading hides them
// from others for a moment.

import { html, useState } from "./vendor/preact-htm.js";
import { ApiError, get, parseExact, post, useResult, usePolled } from "./api.js";
import { number, plural } from "./format.js";
import { payloadText } from "./job_list.js";
import { Button, Confirm, Facts, Failure, Instant, JobLink, Loaded, Progress } from "./parts.js";
import { Table, Text, useDialog, View } from "./parts.js";

const SECONDS = 10;
const POLL_MS = 200;
const PAGE = 20;
// Chosen are single dead letters, or where there are none, the groups, which are listed alone.
const NONE = { groups: [], letters: [], start: 0 };

export function DeadLetters({ queue }) {
  const polled = usePolled(() => get(`/api/queues/${queue}`), SECONDS, queue);
  const look = useResult();
  const inspect = () => look.start((report) => run(queue, "look", {}, report));
  // The choice belongs to the result that it was made on.
  const [{ of, choice }, setChoice] = useState({});
  const chosen = (of === look.data && choice) || NONE;
  const choose = (changes) => setChoice({ of: look.data, choice: { ...chosen, ...changes } });
  const [dialog, open] = useDialog();
  // At once, behind the dialog: what was done is never still listed.
  const onDone = () => [polled.refresh, inspect].forEach((each) => each());
  const props = { queue, ...chosen, look: look.data, onDone };
  return html`<${View} title="Dead letters" polled=${polled} seconds=${SECONDS} what="the queue">${({ dead }) => html`
    <p><strong>${plural(dead, "job")}</strong> in the dead-letter queue, as SQS estimates.</p>
    <p><${Button} kind="primary" busy=${look.busy} onClick=${inspect}>${look.data ? "Inspect again" : "Inspect"}<//>
      <span class="muted"> Reading hides messages from everyone else for a moment, so it needs a click.</span></p>
    ${look.progress}<${Failure} error=${look.error} />
    ${look.data && html`<${Groups} look=${look} chosen=${chosen} choose=${choose}
      open=${(Dialog) => open(Dialog, props)} />`}
    ${dialog}`}<//>`;
}

function Groups({ look: { data, at }, chosen, choose, open }) {
  const { groups, received, total, hidden } = data;
  const count = chosen.letters.length;
  const words = count ? `the ${number(count)} chosen` : chosen.groups.length ? "those chosen" : "all";
  const lost = data.not_received ?? 0;
  return html`<h2>By error and kind</h2>
    <p role="status">${plural(received, "dead letter")} read <${Instant} at=${at} near />${
      received + lost < total && `, of about ${number(total)}: redrive or delete some to read the others`}. ${
      notReceived(lost)} ${
      hidden > 0 && html`<${Hidden} count=${hidden} />`}</p>
    <${Table} caption="Dead letters by error" columns=${columns(chosen, choose)} rows=${groups} keyOf=${nameOf}
      stack empty="No dead letters were received." />
    ${groups.length > 0 && html`<p class="row"><${Button} kind="primary" writes onClick=${() => open(Redrive)}>Redrive ${words} …<//>
        <${Button} writes onClick=${() => open(Delete)}>Delete ${words} …<//></p>
      <${Letters} data=${data} chosen=${chosen} choose=${choose} />`}`;
}

const Hidden = ({ count }) => html`${plural(count, "more is", "more are")} being read by someone else, and
  visible again within 10 minutes.`;

const notReceived = (count) => count > 0 && html`About ${plural(count, "more was", "more were")} there and did not arrive: try
  again in 10 minutes.`;

const toggle = (all, one) => (all.includes(one) ? all.filter((each) => each !== one) : [...all, one]);

const nameOf = ({ error, kind }) => (kind ? `${error} of ${kind}` : error);

const columns = ({ groups }, choose) => [
  { name: "pick", label: "Choose", cell: (group) => html`<input type="checkbox" aria-label=${`Choose ${nameOf(group)}`}
    checked=${groups.includes(group)} onChange=${() => choose({ ...NONE, groups: toggle(groups, group) })} />` },
  { name: "name wrap", label: "Error", head: true, cell: ({ error }) => html`<code>${error}</code>` },
  { name: "kind wrap", label: "Kind", cell: ({ kind }) => kind },
  { name: "count", label: "Jobs", end: true, cell: ({ count }) => number(count) },
  { name: "first", label: "First", cell: ({ oldest }) => html`<${Instant} at=${oldest} />` },
  { name: "last", label: "Last", cell: ({ newest }) => html`<${Instant} at=${newest} />` },
];

const lettersPath = (run, start, groups = []) => `/console/runs/${run}/dead-letters?${new URLSearchParams(
  [["from", start], ...groups.map(({ error }) => ["error", error])])}`;

/** A page of the dead letters that a look read, where single ones can be chosen. */
function Letters({ data, chosen: { groups, letters: chosen, start }, choose }) {
  const path = lettersPath(data.run, start, groups);
  const polled = usePolled(() => get(path), 0, path);
  const others = (letter) => chosen.filter(({ message }) => message !== letter.message);
  return html`<h2>One by one</h2><${Loaded} polled=${polled} what="dead letters">${({ dead_letters: letters, count }) => html`
    <div class="row"><span role="status">${number(start + 1)} to ${number(start + letters.length)}
        ${" "}of ${plural(count, "dead letter")} read${
        groups.length > 0 && `, those of ${groups.map(({ error }) => error).join(", ")}`}, the last sent first.</span>
      <${Button} onClick=${() => choose({ start: start - PAGE })} why=${start === 0 && "This is the first page"}>Previous<//>
      <${Button} onClick=${() => choose({ start: start + PAGE })}
        why=${start + PAGE >= count && "This is the last page"}>Next<//></div>
    <ul class="letters">${letters.map((letter) => html`<li key=${letter.message}>
      <input type="checkbox" aria-label=${`Choose dead letter ${shortOf(letter)}`}
        checked=${others(letter).length < chosen.length}
        onChange=${({ target }) => choose({ letters: target.checked ? [...chosen, letter] : others(letter) })} />
      <details class="panel"><summary><code>${letter.error}</code>${letter.kind && ` of ${letter.kind}`}${
        letter.reason && `: ${letter.reason.slice(0, 100)}`}
        <span class="muted" title=${letter.id}> · ${shortOf(letter)}, <${Instant} at=${letter.sent} near /></span></summary>
        <${Letter} letter=${letter} /></details></li>`)}</ul>`}<//>`;
}

/** The beginning of the last part of a job's id, or of the message's without one. */
const shortOf = ({ id, message }) => (id?.split(".").at(-1) ?? message).slice(0, 8);

const BY_SQS = "SQS moved it, after the last receive that it allows: no worker said why.";

function Letter({ letter: { stack, reason, cut, ...letter } }) {
  const { id, died, sent, attempts, kind, key, tenant, message } = letter;
  const facts = [
    ["Job", id ? html`<${JobLink} id=${id} />` : "of none"],
    ["Died", died ? html`<${Instant} at=${died} />` : html`not known, sent <${Instant} at=${sent} />`],
    ["Attempts", attempts ?? "not recorded"], ["Kind", kind ?? undefined], ["Key", key ?? undefined],
    ["Tenant", tenant ?? undefined], ["Message", html`<code>${message}</code>`],
  ];
  return html`<article><p><strong>${reason ?? BY_SQS}</strong></p><${Facts} facts=${facts} />
    ${stack ? html`<${Text} value=${stack} label=${`Stack trace of ${shortOf(letter)}, its last 4 KB at most`} />`
      : html`<p class="muted">It has no stack trace.</p>`}
    <${Text} value=${readable(letter)} label=${`Payload of ${shortOf(letter)}`} />
    ${cut && html`<p class="muted">Cut: ${cut.map((name) => CUT[name] ?? name).join(", ")}.
      dueline --json dead --payload shows all of it.</p>`}</article>`;
}

const CUT = { payload_text: "payload", stack: "stack trace", id: "job id" };

/** A dead letter's payload: JSON with indents, other text as it is, or where it is in S3. */
export function readable(letter) {
  try {
    return JSON.stringify(parseExact(letter.payload_text), null, 2);
  } catch {
    return payloadText(letter);
  }
}

/** The dead letter of one job, looked for on a click, with its redrive. `refresh` loads the job again. */
export function DeadLetterOf({ job: { id, queue, state }, refresh }) {
  const look = useResult();
  const [dialog, open] = useDialog(() => [refresh, read].forEach((each) => each()));
  const redrive = (letters) => open(Redrive, { queue, letters });
  const read = (then) => look.start(async (report) => {
    const result = await run(queue, "look", { ids: [id] }, report);
    const { dead_letters: letters } = await get(lettersPath(result.run, 0));
    if (letters.length) then?.(letters);
    return { ...result, letters };
  });
  const { received, total, letters = [] } = look.data ?? {};
  return html`<section class="panel"><h2>Dead letter</h2>
    <p class="muted">${state === "failed" ? "It has why the job died." : "If the job died, it has why."} To find it, the
      dead letters of the queue are read, which hides them from everyone else for a moment.</p>
    <p class="row"><${Button} busy=${look.busy} onClick=${() => read()}>Find it<//>
      <${Button} kind="primary" writes busy=${look.busy} onClick=${() => read(redrive)}>Redrive …<//></p>
    ${look.progress}<${Failure} error=${look.error} />
    ${look.data && !letters.length && html`<p role="status">None of the ${plural(received, "dead letter")} read is this
      job's: ${received < total
        ? html`about ${number(total - received)} more were not read. <code>dueline dead ${queue} --id ${id}</code> reads all.`
        : "it was put back, deleted or kept too long, or someone else is reading it."}</p>`}
    ${letters.map((letter) => html`<${Letter} key=${letter.message} letter=${letter} />`)}${dialog}</section>`;
}

/** A dialog that puts dead letters back: single ones, chosen groups, or all groups that were shown. */
export const Redrive = ({ onClose, ...chosen }) => html`<${Confirm} title=${`Redrive dead letters of ${chosen.queue}?`}
    verb="Redrive" act=${change("redrive", chosen)} onClose=${onClose}>
    <p>Puts ${chosenWords(chosen)} back into the queue, where workers try again from attempt 1.
      <strong>At least once</strong>: each is sent first and deleted after, so an end in between leaves both.</p>
  <//>`;

/** A dialog that deletes the same. */
const Delete = ({ onClose, ...chosen }) => html`<${Confirm} title=${`Delete dead letters of ${chosen.queue}?`}
    verb="Delete for good" danger typed=${chosen.queue} act=${change("delete", chosen)} onClose=${onClose}>
    <p>Deletes ${chosenWords(chosen)}. They cannot be brought back, and their payloads are gone.</p>
  <//>`;

const groupsOf = ({ groups, look }) => (groups.length ? groups : look.groups);

function chosenWords({ letters: [letter, ...others], ...chosen }) {
  if (others.length) return `the ${number(others.length + 1)} chosen dead letters`;
  if (letter) return html`the ${letter.id ? "job" : "message"} <code title=${letter.id}>${shortOf(letter)}</code> (${nameOf(letter)})`;
  const groups = groupsOf(chosen);
  const all = plural(groups.reduce((total, { count }) => total + count, 0), "job");
  return html`those of ${groups.map(nameOf).join(", ")}: <strong>${all}</strong> as inspected, and those of the same
    errors and kinds that have come since`;
}

const change = (action, { queue, letters, onDone, ...chosen }) => async (report) => {
  const body = letters.length ? { messages: letters.map(({ message }) => message) }
    : { groups: groupsOf(chosen).map(({ error, kind }) => ({ error, kind })) };
  const result = await run(queue, action, body, report);
  onDone?.();
  return html`<${Counts} ...${result} done=${DONE[action]} />`;
};

const DONE = { redrive: "put back into the queue", delete: "deleted for good" };

function Counts({ received, hidden, missing, not_received: lost, stay, failed, done, changed }) {
  return html`<ul role="status">
    <li><strong>${plural(changed, "job")}</strong> ${done}, of ${number(received)} read.</li>
    ${stay.map(({ reason, count }) => html`<li key=${reason} class="warn">
      <strong>${number(count)} stay</strong>: ${reason}</li>`)}
    ${failed.map(({ reason, count }) => html`<li key=${reason} class="bad">
      <strong>${number(count)} failed</strong> this time, try again: ${reason}</li>`)}
    ${missing > 0 && html`<li class="warn"><strong>${number(missing)} not found</strong>: put back, deleted or kept too
      long, or being read by someone else.</li>`}
    ${lost > 0 && html`<li class="warn">${notReceived(lost)}</li>`}
    ${hidden > 0 && html`<li><${Hidden} count=${hidden} /></li>`}
  </ul>`;
}

/** Start a run and poll it. Return its result with its id, `run`, or throw ApiError; `report` gets how far it is. */
async function run(queue, action, body, report) {
  report(html`<${Progress} what="dead letter" />`);
  const started = await post(`/console/queues/${queue}/dead-letters/${action}`, body);
  for (;;) {
    const { state, result, error, done, of } = await get(`/console/runs/${started.run}`);
    if (state === "done") return { ...result, run: started.run };
    if (state === "failed") {
      // SQS may have done more than its answers said.
      const before = result ? `. Before that, at least ${plural(result.changed, "job was", "jobs were")} ${DONE[action]}.` : "";
      throw new ApiError({ title: "The run failed", ...error, detail: error.detail + before });
    }
    report(html`<${Progress} done=${done} of=${of} what="dead letter" />`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
