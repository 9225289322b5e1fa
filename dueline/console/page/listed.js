// Jobs as the API lists them, page by page.

import { get } from "./api.js";

const PAGE = 100;
// A page behind much that is cancelled may be empty: so many more are asked for, and then it is for the reader to go on.
const SPARE_PAGES = 20;
// The API begins at the present unless it is told, and so leaves out what is overdue.
const EARLIEST = "1970-01-01T00:00:00Z";

/** Yield the pages of a span {from, to}, from the place `next` on. */
export async function* pages(queue, { from, to }, next = null) {
  do {
    const asked = { from: from || EARLIEST, limit: PAGE, ...(to && { to }), ...(next && { next }) };
    const page = await get(`/api/queues/${queue}/jobs?${new URLSearchParams(asked)}`);
    yield page;
    next = page.next;
  } while (next);
}

/** Fetch at least so many jobs of a span, if there are. Return {jobs, more}. */
export async function fetchJobs(queue, span, most) {
  const jobs = [];
  let left = most / PAGE + SPARE_PAGES;
  for await (const page of pages(queue, span)) {
    jobs.push(...page.jobs);
    left -= 1;
    if (page.next && (jobs.length >= most || left <= 0)) return { jobs, more: true };
  }
  return { jobs, more: false };
}

/** Find a job among those that are due when it is; null where it is not listed. */
export async function findListed(queue, { id, due }) {
  const after = new Date(Date.parse(due) + 1).toISOString();
  let left = SPARE_PAGES;
  for await (const page of pages(queue, { from: due, to: after })) {
    const found = page.jobs.find((job) => job.id === id);
    if (found || !(left -= 1)) return found ?? null;
  }
  return null;
}
