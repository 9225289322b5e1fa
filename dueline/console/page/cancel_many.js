// Cancelling all jobs that filters pick: counted first, then cancelled a batch at a time.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { post } from "./api.js";
import { number, plural } from "./format.js";
import { fetchJobs } from "./listed.js";
import { matcher, payloadText } from "./matching.js";
import { Button, Confirm, Failure, Instant, JobLink, Progress } from "./parts.js";

const MOST = 10000;
const BATCH = 100;
const SAMPLE = 3;
const UNSURE = "not known: look again";

/** A dialog that counts the jobs that filters pick, and cancels them. */
export function CancelMany({ queue, query, onClose }) {
  const [{ fetched = 0, jobs, more, error }, setSeen] = useState({});
  useEffect(() => {
    let closed = false;
    const tell = ({ jobs }) => !closed && setSeen({ fetched: jobs.length });
    counted(queue, query, tell).then(setSeen, (error) => setSeen({ error }));
    return () => { closed = true; };
  }, []);
  const count = jobs?.length ?? 0;
  return html`<${Confirm} title=${`Cancel many jobs of ${queue}?`} verb=${`Cancel ${plural(count, "job")}`} danger
    act=${(tell) => cancelAll(queue, jobs, tell)} onClose=${onClose} ready=${count > 0} back="Keep them">
    <p>Of the jobs that are scheduled, ${filterWords(query)}:</p>
    ${!jobs && !error && html`<${Progress} done=${fetched} />`}
    <${Failure} error=${error} />
    ${jobs && html`<${Seen} jobs=${jobs} fetched=${fetched} more=${more} />`}
    <p class="muted">A job that is cancelled cannot be brought back. What was handed to the queue already is not counted
      here.</p>
  <//>`;
}

const WORDS = { from: "due from", to: "due before", tenant: "of the tenant", text: "with the text", field: "with" };

function filterWords(query) {
  const words = Object.keys(WORDS).flatMap((name) => (query[name] ? [`${WORDS[name]} ${query[name]}`] : []));
  return words.length ? `those ${words.join(", ")}` : html`<strong>all of them</strong>, since no filter is set`;
}

async function counted(queue, query, tell) {
  const matches = matcher(query);
  const { jobs, more } = await fetchJobs(queue, query, MOST, tell);
  return { fetched: jobs.length, more, jobs: jobs.filter(matches) };
}

function Seen({ jobs, fetched, more }) {
  return html`<div role="status">
    <p><strong>${plural(jobs.length, "job")}</strong> of ${number(fetched)} that were fetched.
      ${more && ` There are more in this span than are fetched at a time: cancel these, then count again.`}</p>
    <ul>${jobs.slice(0, SAMPLE).map((job) => html`<li key=${job.id}><${JobLink} id=${job.id} /> due${" "}
      <${Instant} at=${job.due} /> <code>${payloadText(job).slice(0, 120)}</code></li>`)}</ul>
  </div>`;
}

/** Cancel jobs a batch at a time, until all are or the reader stops it, and return what came of it. */
async function cancelAll(queue, jobs, tell) {
  const answers = [];
  let last = {};
  let stopped = false;
  const stop = () => { stopped = true; };
  while (answers.length < jobs.length && !stopped) {
    tell(html`<${Progress} done=${answers.length} of=${jobs.length} /><${Button} onClick=${stop}>Stop here<//>`);
    const ids = jobs.slice(answers.length, answers.length + BATCH).map(({ id }) => id);
    last = await batch(queue, ids);
    if (last.error) break;
    answers.push(...last.jobs);
  }
  return html`<${Result} answers=${answers} left=${jobs.length - answers.length} ...${last} />`;
}

/** Cancel jobs, once more if that fails, which is safe: {jobs} or {error, unsure: how many may be cancelled anyway}. */
const batch = (queue, ids, before) => post(`/api/queues/${queue}/cancellations`, { ids }).catch((error) =>
  before ? { error, unsure: isRefusal(before) && isRefusal(error) ? 0 : ids.length } : batch(queue, ids, error));

const isRefusal = ({ status }) => status >= 400 && status < 500 && status !== 429;

function Result({ answers, left, error, unsure = 0 }) {
  const requested = answers.filter(({ state }) => state === "cancel_requested");
  const cancelled = answers.filter(({ state }) => state === "cancelled").length;
  const refused = Object.entries(Object.groupBy(answers.filter((job) => job.error), (job) => job.error.detail));
  return html`<ul>
      <li><strong>${number(cancelled)} cancelled</strong> (200): none comes under its id, that is a promise. One
        that was moved after they were counted comes as its new job.</li>
      <li class=${requested.length && "warn"}><strong>${number(requested.length)} cancel requested</strong> (202): they
        may still come, since they are in their queue or on their way there. Workers that ask skip them.
        ${requested.slice(0, SAMPLE).map(({ id }) => html` <${JobLink} key=${id} id=${id} />`)}</li>
      ${refused.map(([why, jobs]) => html`<li key=${why} class="bad">
        <strong>${number(jobs.length)} ${isRefusal(jobs[0].error) ? "not cancelled" : UNSURE}:</strong> ${why}</li>`)}
      ${unsure > 0 && html`<li class="bad"><strong>${number(unsure)} ${UNSURE}</strong>, since the answer was lost.</li>`}
      ${left > unsure && html`<li class="warn"><strong>${number(left - unsure)} not asked for:</strong>
        ${error ? " it failed before" : " you stopped it"}. They are scheduled as before.</li>`}
    </ul>
    <${Failure} error=${error} />`;
}
