// Jobs as the API lists them, page by page.

import { get } from "./api.js";

const PAGE = 100;
// A page behind much that is cancelled may be empty: so many more are asked for, then it is for the reader to go on.
const SPARE_PAGES = 20;
// The API begins at the present unless it is told, and so leaves out what is overdue.
const EARLIEST = "1970-01-01T00:00:00Z";

/** Fetch at least `most` jobs of a span {from, to}, if there are. Return {jobs, more}; `tell` gets that meanwhile. */
export async function fetchJobs(queue, { from, to }, most, tell = () => {}) {
  const jobs = [];
  let next;
  for (let left = most / PAGE + SPARE_PAGES; left > 0 && jobs.length < most; left -= 1) {
    const asked = { from: from || EARLIEST, limit: PAGE, ...(to && { to }), ...(next && { next }) };
    const page = await get(`/api/queues/${queue}/jobs?${new URLSearchParams(asked)}`);
    jobs.push(...page.jobs);
    next = page.next;
    if (!next || tell({ jobs, more: true }) === false) break;
  }
  return { jobs, more: Boolean(next) };
}

/** Find a job among those that are due when it is; undefined where it is not listed. */
export async function findListed(queue, { id, due }) {
  const after = new Date(Date.parse(due) + 1).toISOString();
  const { jobs } = await fetchJobs(queue, { from: due, to: after }, PAGE * SPARE_PAGES);
  return jobs.find((job) => job.id === id);
}
