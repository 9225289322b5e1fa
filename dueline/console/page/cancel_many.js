// Cancelling all jobs that filters pick: counted first, then cancelled a batch at a time.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { post } from "./api.js";
import { Confirm } from "./confirm.js";
import { local, number, plural } from "./format.js";
import { JobLink } from "./job_link.js";
import { pages } from "./listed.js";
import { matcher, payloadText } from "./matching.js";
import { Button, Failure, Instant, Progress } from "./parts.js";

const MOST = 10000;
const BATCH = 100;
const SAMPLE = 3;

/** A dialog that counts the jobs that filters pick, and cancels them. */
export function CancelMany({ queue, query, onClose }) {
  const [seen, setSeen] = useState({ ids: [], sample: [], fetched: 0 });
  useEffect(() => {
    const scan = {};
    counted(queue, query, scan, setSeen);
    return () => { scan.stopped = true; };
  }, []);
  const { ids, isWhole } = seen;
  return html`<${Confirm} title=${`Cancel many jobs of ${queue}?`} verb=${`Cancel ${plural(ids.length, "job")}`} danger
    act=${(tell) => cancelAll(queue, ids, tell)} onClose=${onClose} ready=${Boolean(isWhole && ids.length)} back="Keep them">
    <p>Of the jobs that are scheduled, ${filterWords(query)}:</p>
    <${Seen} seen=${seen} />
    <p class="muted">A job that is cancelled cannot be brought back. What was handed to the queue already is not counted here.</p>
  <//>`;
}

function filterWords({ from, to, tenant, text, field }) {
  const words = [
    from && `due from ${local(from, 0)}`,
    to && `due before ${local(to, 0)}`,
    tenant && `of the tenant ${tenant}`,
    text && `with “${text}” in the payload`,
    field && `with ${field} in the payload`,
  ].filter(Boolean);
  return words.length ? `those ${words.join(", ")}` : html`<strong>all of them</strong>, since no filter is set`;
}

/** Go through the jobs of a span and keep the ids of those that match: {ids, sample, fetched, isWhole, more, error}. */
async function counted(queue, query, scan, tell) {
  const ids = [];
  const sample = [];
  let fetched = 0;
  let more = false;
  try {
    const matches = matcher(query);
    for await (const { jobs, next } of pages(queue, query)) {
      const found = jobs.filter(matches);
      ids.push(...found.map(({ id }) => id));
      sample.push(...found.slice(0, SAMPLE - sample.length));
      fetched += jobs.length;
      more = Boolean(next) && fetched >= MOST;
      if (scan.stopped) return;
      if (more) break;
      tell({ ids, sample, fetched });
    }
    tell({ ids, sample, fetched, more, isWhole: true });
  } catch (error) {
    tell({ ids: [], sample: [], fetched, error, isWhole: true });
  }
}

function Seen({ seen: { ids, sample, fetched, more, isWhole, error } }) {
  if (error) return html`<${Failure} error=${error} />`;
  if (!isWhole) return html`<${Progress} done=${fetched} what="job" />`;
  return html`<div role="status">
    <p><strong>${plural(ids.length, "job")}</strong> of ${number(fetched)} that were fetched.
      ${more && ` There are more in this span than the ${number(MOST)} that are fetched at a time: cancel these, then count again.`}</p>
    <ul class="list">${sample.map((job) => html`<li key=${job.id}><${JobLink} id=${job.id} /> due <${Instant} at=${job.due} />
      ${job.tenant && ` of ${job.tenant}`} <code>${payloadText(job).slice(0, 120)}</code></li>`)}</ul>
    ${ids.length > sample.length && html`<p class="muted">and ${number(ids.length - sample.length)} more</p>`}
  </div>`;
}

/** Cancel jobs a batch at a time, until all are or the reader stops it, and return what came of it. */
async function cancelAll(queue, ids, tell) {
  const tally = { cancelled: [], cancel_requested: [], refused: new Map(), asked: 0, of: ids.length };
  let stopped = false;
  const stop = () => { stopped = true; };
  while (tally.asked < ids.length && !stopped) {
    tell(html`<${Progress} done=${tally.asked} of=${ids.length} what="job" /> <${Button} onClick=${stop}>Stop here<//>`);
    const batch = ids.slice(tally.asked, tally.asked + BATCH);
    try {
      note(tally, await post(`/api/queues/${queue}/cancellations`, { ids: batch }));
    } catch (error) {
      return html`<${Result} tally=${tally} error=${error} />`;
    }
  }
  return html`<${Result} tally=${tally} />`;
}

function note(tally, { jobs }) {
  for (const { id, state, error } of jobs) {
    if (error) tally.refused.set(error.detail, (tally.refused.get(error.detail) ?? 0) + 1);
    else tally[state].push(id);
  }
  tally.asked += jobs.length;
}

function Result({ tally: { cancelled, cancel_requested: requested, refused, asked, of }, error }) {
  return html`<ul class="list">
      <li><strong>${number(cancelled.length)} cancelled</strong> (200): they never come, that is a promise.</li>
      <li class=${requested.length ? "warn" : ""}><strong>${number(requested.length)} cancel requested</strong> (202): they may still come, since they are in their queue
        or on their way there. Workers that ask skip them.
        ${requested.slice(0, SAMPLE).map((id) => html` <${JobLink} key=${id} id=${id} />`)}</li>
      ${[...refused].map(([why, count]) => html`<li key=${why} class="bad"><strong>${number(count)} not cancelled:</strong> ${why}</li>`)}
      ${asked < of && html`<li class="warn"><strong>${number(of - asked)} not asked for:</strong> ${error ? "it failed before" : "you stopped it"}. They are
        scheduled as before.</li>`}
    </ul>
    <${Failure} error=${error} />`;
}
