// Jobs as the API lists them: fetched page by page, and looked for among what is fetched.

import { get } from "./api.js";
import { number, plural } from "./format.js";

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

/** A payload as text: as JSON in lines where `indent` says so. */
export function payloadText(job, indent) {
  const place = job.payload_at;
  if (place) return `${number(place.bytes)} bytes in S3, s3://${place.bucket}/${place.key}`;
  return job.payload_text ?? JSON.stringify(job.payload, null, indent);
}

/** Return a function that tells whether a job is looked for. Throws an Error that says what is wrong with `field`. */
export function matcher({ tenant, text, field }) {
  const has = field ? condition(field) : () => true;
  const part = text?.toLowerCase();
  const isNamed = (job) => !tenant || job.tenant === tenant;
  return (job) => isNamed(job) && (!part || payloadText(job).toLowerCase().includes(part)) && has(job);
}

/** A condition on a field of the payload: `campaign = 42`, `to.city = "Bonn"`. */
export function condition(text) {
  const [, path, wanted] = /^\s*([^=]*?[^=\s])\s*=\s*(.*?)\s*$/s.exec(text) ?? [];
  if (!path) throw new Error(`field is "${text}": it must be a field, = and a value, such as campaign = 42`);
  return (job) => {
    const value = fieldOf(job.payload, path);
    return value !== undefined && (value === wanted || JSON.stringify(value) === compact(wanted));
  };
}

function fieldOf(payload, path) {
  const own = (value, name) => (value && Object.hasOwn(Object(value), name) ? value[name] : undefined);
  return own(payload, path) ?? path.split(".").reduce(own, payload);
}

function compact(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

/** "12 of the first 200 jobs". */
export const found = (count, { jobs, more }) => `${number(count)} of ${more ? "the first " : ""}${plural(jobs.length, "job")}`;
