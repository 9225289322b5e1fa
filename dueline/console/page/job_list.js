// Jobs as the API lists them, page by page, and what is due of them.

import { get } from "./api.js";
import { number } from "./format.js";
import { total } from "./queue_state.js";

/** What the charts of a queue show: so many hours that come, and so many that were. */
export const HOURS = 6;
const PAGE = 100;
// Behind many cancelled jobs, pages may be empty: so many more are fetched, then the reader decides.
const SPARE_PAGES = 20;
const MOST_COUNTED = 1000;
const MOST_COUNTING_MS = 3000;
// By default the API begins at the present, and leaves out what is overdue.
const EARLIEST = "1970-01-01T00:00:00Z";

/**
 * Fetch at least `most` jobs of a span {from, to}, of one `kind` or of all, if there are: scheduled ones, or those that
 * workers recorded in a `state`. Return {jobs, more, unreadable}, where `unreadable` is how many rows cannot be read.
 * It ends before a page where `goesOn` returns false.
 */
export async function fetchJobs(queue, { from, to, kind, state }, most, goesOn = () => true) {
  const jobs = [];
  let [next, unreadable] = ["", 0];
  for (let left = most / PAGE + SPARE_PAGES; left > 0 && jobs.length < most; left -= 1) {
    const chosen = { ...(to && { to }), ...(kind && { kind }), ...(state && { state }), ...(next && { next }) };
    const params = { from: from || EARLIEST, limit: PAGE, ...chosen };
    const page = await get(`/api/queues/${queue}/jobs?${new URLSearchParams(params)}`);
    jobs.push(...page.jobs);
    next = page.next;
    unreadable += page.unreadable ?? 0;
    if (!next || !goesOn()) break;
  }
  return { jobs, more: Boolean(next), unreadable };
}

/** What is due in the next hours, of up to 1,000 jobs: {from, until, minutes: [[epoch seconds, jobs]], overdue, …}. */
export async function fetchDue(queue) {
  const now = Date.now();
  const to = new Date(now + HOURS * 3600000).toISOString();
  // Large payloads make small pages.
  const { jobs, more } = await fetchJobs(queue, { to }, MOST_COUNTED, () => Date.now() < now + MOST_COUNTING_MS);
  const counts = new Map();
  for (const due of jobs.map((job) => Date.parse(job.due)).filter((due) => due >= now)) {
    const minute = Math.floor(due / 60000) * 60;
    counts.set(minute, (counts.get(minute) ?? 0) + 1);
  }
  const until = more && jobs.length ? jobs.at(-1).due : to;
  const overdue = jobs.length - total([...counts]);
  return { from: new Date(now).toISOString(), until, minutes: [...counts], overdue, counted: jobs.length, more };
}

/** A payload as text; `indent` is that of JSON. */
export function payloadText(job, indent) {
  const place = job.payload_at;
  if (place) return `${number(place.bytes)} bytes in S3, s3://${place.bucket}/${place.key}`;
  return job.payload_text ?? JSON.stringify(job.payload, null, indent);
}
