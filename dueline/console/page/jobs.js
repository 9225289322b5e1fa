// The scheduled jobs of a queue, in due order, and the dialog that cancels many. The filters are in the address.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { get, isRefusal, post, usePolled } from "./api.js";
import { fieldText, instant, number, plural, ZONE } from "./format.js";
import { STATES } from "./job.js";
import { JobForm } from "./job_form.js";
import { fetchJobs, countWords, matcher, payloadText, unread, unreadWords } from "./job_list.js";
import { Button, Confirm, Failure, Field, Input, Instant, JobLink, Progress, Select } from "./parts.js";
import { State, Table, Unreadable, useDialog, View } from "./parts.js";
import { queuePath, setQuery } from "./route.js";

const SECONDS = 30;
const STEP = 200;
const MOST_SHOWN = 1000;
const SHOWN_CHARACTERS = 160;
const MOST_CANCELLED = 10000;
const BATCH = 100;
const SAMPLE = 3;
const UNSURE = "not known: look again";

export function Jobs({ queue, query }) {
  const most = useRef(STEP);
  const key = JSON.stringify([queue, query.from, query.to, query.kind, query.state]);
  const polled = usePolled(() => fetchJobs(queue, query, most.current), SECONDS, key);
  const [dialog, open] = useDialog(polled.refresh);
  const more = () => {
    most.current += STEP;
    polled.refresh();
  };
  const above = html`<div class="row">
      <${Button} kind="primary" writes onClick=${() => open(JobForm, { queue })}>Schedule a job …<//>
      <${Button} writes why=${query.state && "Only what is scheduled can be cancelled together"}
        onClick=${() => open(CancelMany, { queue, query })}>Cancel all that match …<//>
    </div>
    <${Filters} queue=${queue} query=${query} />${dialog}`;
  return html`<${View} title="Jobs" above=${above} polled=${polled} seconds=${SECONDS} what="jobs">
    ${(fetched) => html`<${List} queue=${queue} query=${query} fetched=${fetched} more=${more} />`}<//>`;
}

export function Filters({ queue, query }) {
  const queues = usePolled(() => get("/api/queues"), 0, queue).data?.queues;
  const isOff = queues?.some((each) => each.queue === queue && !each.track);
  const text = (name, label, placeholder) =>
    html`<${Input} form=${[query, setQuery]} name=${name} label=${label} placeholder=${placeholder} type="search" />`;
  const time = (name, label) => {
    const set = ({ target }) => setQuery({ [name]: target.value && instant(target.value) });
    return html`<${Field} label=${label}><input type="datetime-local" step="1" title=${`Time in ${ZONE}`}
      value=${fieldText(query[name])} onChange=${set} /><//>`;
  };
  return html`<div class="filters" role="group" aria-label="Filters">
    <${Select} form=${[query, setQuery]} name="state" label="State" options=${Object.entries(LISTED).map(([state, word]) =>
      (isOff && state ? [state, `${word} (needs track: true)`, true] : [state, word]))} />
    ${time("from", "Due from")}${time("to", "Due before")}${text("kind", "Kind", "all")}
    ${!query.state && html`${text("tenant", "Tenant", "all")}${text("text", "Text in the payload", "any")}
      ${text("field", "Field of the payload", "campaign = 42")}`}
  </div>`;
}

const LISTED = {
  "": "scheduled", attempted: "all that workers received", running: "running", dispatched: "between attempts",
  failed: "failed", succeeded: "succeeded", skipped: "skipped",
};

const RECORDED = html`<p class="muted">As workers recorded them, the last due first. What no worker has received is not
  among them; of a worker that died, a job stays running.</p>`;

function List({ queue, query, fetched, more }) {
  const filters = query.state ? {} : query;
  const { jobs, wrong } = useMemo(() => filterJobs(fetched.jobs, filters), [fetched, JSON.stringify(query)]);
  if (wrong) return html`<p class="empty">${wrong}</p>`;
  const why = fetched.jobs.length >= MOST_SHOWN && `${MOST_SHOWN} are shown at most: narrow the time span`;
  const unmatched = unread(fetched.jobs, filters);
  const words = fetched.more ? "fetched" : query.state ? "recorded" : "scheduled";
  return html`${query.state && RECORDED}<p role="status">${countWords(jobs.length, fetched)} ${words}.
      ${unmatched > 0 && unreadWords(unmatched)}</p><${Unreadable} rows=${fetched.unreadable} />
    <${Table} caption=${query.state ? "Recorded jobs" : "Scheduled jobs"} rows=${jobs} keyOf=${({ id }) => id} stack
      columns=${(query.state ? recordedColumns : columns)(queue, jobs)}
      empty=${fetched.jobs.length ? "None of them matches." : query.state ? NONE_RECORDED : NONE} />
    ${fetched.more && html`<p><${Button} onClick=${more} why=${why}>Fetch ${STEP} more<//></p>`}`;
}

const NONE = "Nothing is scheduled in this time span. The search above finds dispatched jobs, by whole id or key.";
const NONE_RECORDED = "Workers recorded no such job in this time span.";

function filterJobs(jobs, query) {
  try {
    return { jobs: jobs.filter(matcher(query)) };
  } catch (error) {
    return { wrong: error.message };
  }
}

const recordedColumns = (_, jobs) => [
  { name: "name", label: "Due", head: true, cell: ({ due }) => html`<${Instant} at=${due} />` },
  { name: "states", label: "State", cell: ({ state }) =>
    html`<${State} word=${LISTED[state]} tone=${state === "dispatched" ? "warn" : STATES[state][0]} />` },
  { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
  ...optional(jobs),
  { name: "count", label: "Attempts", end: true, cell: ({ attempts }) => number(attempts) },
  { name: "started", label: "Last began", cell: ({ started }) => html`<${Instant} at=${started} />` },
  { name: "ended", label: "Ended", cell: ({ ended }) => (ended ? html`<${Instant} at=${ended} />` : "not recorded") },
  { name: "error wrap", label: "Error", cell: ({ error }) => error && html`<code>${error}</code>` },
];

/** The columns of kinds and keys, if a job has any. */
const optional = (jobs) => [{ name: "kind", label: "Kind" }, { name: "key", label: "Key" }].filter(({ name }) =>
  jobs.some((job) => job[name]));

const columns = (queue, jobs) => [
  { name: "name", label: "Due", head: true, cell: ({ due }) => html`<${Instant} at=${due} />` },
  { name: "near", label: "In", cell: ({ due }) => html`<${Instant} at=${due} near />` },
  { name: "id", label: "Job", cell: ({ id }) => html`<${JobLink} id=${id} />` },
  ...optional(jobs),
  { name: "tenant", label: "Tenant" },
  { name: "schedule", label: "Schedule",
    cell: ({ schedule }) => schedule && html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "payload wrap", label: "Payload", cell: (job) => html`<code>${cut(payloadText(job))}</code>` },
];

const cut = (text) => (text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)} …` : text);

/** A dialog that counts the jobs that filters pick, and cancels them. */
export function CancelMany({ queue, query, onClose }) {
  const [{ fetched, unmatched, jobs, more, error }, setPreview] = useState({});
  useEffect(() => {
    let closed = false;
    const report = ({ jobs }) => !closed && setPreview({ fetched: jobs.length });
    countMatching(queue, query, report).then(setPreview, (error) => setPreview({ error }));
    return () => { closed = true; };
  }, []);
  return html`<${Confirm} title=${`Cancel many jobs of ${queue}?`} danger back="Keep them" onClose=${onClose}
    verb=${`Cancel ${jobs ? plural(jobs.length, "job") : "the jobs"}`} ready=${jobs?.length > 0}
    act=${(report) => cancelAll(queue, jobs, report)}>
    <p>Of the scheduled jobs, ${filterWords(query)}:</p>
    ${!jobs && !error && html`<${Progress} done=${fetched} />`}
    <${Failure} error=${error} />
    ${jobs && html`<${Preview} jobs=${jobs} fetched=${fetched} unmatched=${unmatched} more=${more} />`}
    <p class="muted">A cancelled job cannot be brought back. Jobs already dispatched are not counted here.</p>
  <//>`;
}

const WORDS = { from: "due from", to: "due before", kind: "of the kind", tenant: "of the tenant", text: "with the text", field: "with" };

function filterWords(query) {
  const words = Object.keys(WORDS).flatMap((name) => (query[name] ? [`${WORDS[name]} ${query[name]}`] : []));
  return words.length ? `those ${words.join(", ")}` : html`<strong>all of them</strong>, since no filter is set`;
}

async function countMatching(queue, query, report) {
  const matches = matcher(query);
  const { jobs, more } = await fetchJobs(queue, query, MOST_CANCELLED, report);
  return { fetched: jobs.length, more, unmatched: unread(jobs, query), jobs: jobs.filter(matches) };
}

function Preview({ jobs, fetched, unmatched, more }) {
  return html`<div role="status">
    <p><strong>${plural(jobs.length, "job")}</strong> of ${number(fetched)} fetched.
      ${more && ` There are more in this span than are fetched at a time: cancel these, then count again.`}</p>
    ${unmatched > 0 && html`<p class="warn">${unreadWords(unmatched)}</p>`}
    <ul>${jobs.slice(0, SAMPLE).map((job) => html`<li key=${job.id}><${JobLink} id=${job.id} /> due${" "}
      <${Instant} at=${job.due} /> <code>${payloadText(job).slice(0, 120)}</code></li>`)}</ul>
  </div>`;
}

/** Cancel jobs a batch at a time, until all are or the reader stops it, and return the result. */
async function cancelAll(queue, jobs, report) {
  const answers = [];
  let last = {};
  let stopped = false;
  const stop = () => { stopped = true; };
  while (answers.length < jobs.length && !stopped) {
    report(html`<${Progress} done=${answers.length} of=${jobs.length} /><${Button} onClick=${stop}>Stop here<//>`);
    const ids = jobs.slice(answers.length, answers.length + BATCH).map(({ id }) => id);
    last = await cancelBatch(queue, ids);
    if (last.error) break;
    answers.push(...last.jobs);
  }
  return html`<${Result} answers=${answers} left=${jobs.length - answers.length} ...${last} />`;
}

/** Cancel jobs, once more if that fails, which is safe: {jobs} or {error, unsure: how many may be cancelled anyway}. */
const cancelBatch = (queue, ids, before) => post(`/api/queues/${queue}/cancellations`, { ids }).catch((error) =>
  before ? { error, unsure: isRefusal(before) && isRefusal(error) ? 0 : ids.length } : cancelBatch(queue, ids, error));

function Result({ answers, left, error, unsure = 0 }) {
  const requested = answers.filter(({ state }) => state === "cancel_requested");
  const cancelled = answers.filter(({ state }) => state === "cancelled").length;
  const refused = Object.entries(Object.groupBy(answers.filter((job) => job.error), (job) => job.error.detail));
  return html`<ul>
      <li><strong>${number(cancelled)} cancelled</strong> (200): none will be delivered, guaranteed, also
        those that were moved meanwhile.</li>
      <li class=${requested.length && "warn"}><strong>${number(requested.length)} cancel requested</strong> (202): they
        may still be delivered: they are in their queue or on their way. Workers may skip them.
        ${requested.slice(0, SAMPLE).map(({ id }) => html` <${JobLink} key=${id} id=${id} />`)}</li>
      ${refused.map(([why, jobs]) => html`<li key=${why} class="bad">
        <strong>${number(jobs.length)} ${isRefusal(jobs[0].error) ? "not cancelled" : UNSURE}:</strong> ${why}</li>`)}
      ${unsure > 0 && html`<li class="bad"><strong>${number(unsure)} ${UNSURE}</strong>, the answer was lost.</li>`}
      ${left > unsure && html`<li class="warn"><strong>${number(left - unsure)} not tried:</strong>
        ${error ? " it failed before" : " you stopped it"}. They are still scheduled.</li>`}
    </ul>
    <${Failure} error=${error} />`;
}
