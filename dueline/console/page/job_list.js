// Jobs as the API lists them, page by page, and the filters on what was fetched.

import { parseExact, get, plainText } from "./api.js";
import { number, plural } from "./format.js";
import { total } from "./queue_state.js";

const PAGE = 100;
// Behind many cancelled jobs, pages may be empty: so many more are fetched, then the reader decides.
const SPARE_PAGES = 20;
const MOST_COUNTED = 1000;
const MOST_COUNTING_MS = 3000;
// By default the API begins at the present, and leaves out what is overdue.
const EARLIEST = "1970-01-01T00:00:00Z";

/**
 * Fetch at least `most` jobs of a span {from, to}, of one `kind` or of all, if there are: scheduled ones, or those that
 * workers recorded in a `state`. Return {jobs, more, unreadable}, where `unreadable` is
 * how many rows cannot be read. `report` gets the first two after each page, and ends it by returning false.
 */
export async function fetchJobs(queue, { from, to, kind, state }, most, report = () => {}) {
  const jobs = [];
  let [next, unreadable] = ["", 0];
  for (let left = most / PAGE + SPARE_PAGES; left > 0 && jobs.length < most; left -= 1) {
    const chosen = { ...(to && { to }), ...(kind && { kind }), ...(state && { state }), ...(next && { next }) };
    const params = { from: from || EARLIEST, limit: PAGE, ...chosen };
    const page = await get(`/api/queues/${queue}/jobs?${new URLSearchParams(params)}`);
    jobs.push(...page.jobs);
    next = page.next;
    unreadable += page.unreadable ?? 0;
    if (!next || report({ jobs, more: true }) === false) break;
  }
  return { jobs, more: Boolean(next), unreadable };
}

/** Points [epoch seconds, value], with the values of each step added up. */
export function group(points, step) {
  const totals = new Map();
  for (const [at, count] of points) {
    const from = at - (at % step);
    totals.set(from, (totals.get(from) ?? 0) + count);
  }
  return [...totals];
}

/** What is due in the next hours, of up to 1,000 jobs: {from, until, minutes: [[epoch seconds, jobs]], overdue, …}. */
export async function fetchDue(queue, hours) {
  const now = Date.now();
  const to = new Date(now + hours * 3600000).toISOString();
  // Large payloads make small pages.
  const { jobs, more } = await fetchJobs(queue, { to }, MOST_COUNTED, () => Date.now() < now + MOST_COUNTING_MS);
  const minutes = group(jobs.map(({ due }) => [Date.parse(due) / 1000, 1]).filter(([at]) => at * 1000 >= now), 60);
  const until = more && jobs.length ? jobs.at(-1).due : to;
  const overdue = jobs.length - total(minutes);
  return { from: new Date(now).toISOString(), until, minutes, overdue, counted: jobs.length, more };
}

/** A payload as text; `indent` is that of JSON. */
export function payloadText(job, indent) {
  const place = job.payload_at;
  if (place) return `${number(place.bytes)} bytes in S3, s3://${place.bucket}/${place.key}`;
  return job.payload_text ?? JSON.stringify(job.payload, null, indent);
}

/** Return a function that says whether a job matches the filters. Throws an Error for a wrong `field`. */
export function matcher({ tenant, text, field }) {
  const has = field ? condition(field) : () => true;
  const part = text?.toLowerCase();
  const isNamed = (job) => !tenant || job.tenant === tenant;
  const holds = (job) => !part || (!job.payload_at && payloadText(job).toLowerCase().includes(part));
  return (job) => isNamed(job) && holds(job) && has(job);
}

/** How many jobs a filter on the payload cannot match: their payloads are in S3, and were not fetched. */
export const unread = (jobs, { tenant, text, field }) =>
  (text || field ? jobs.filter((job) => job.payload_at && (!tenant || job.tenant === tenant)).length : 0);

export const unreadWords = (count) =>
  `${plural(count, "payload is", "payloads are")} in S3 and not fetched: no filter on the payload matches them.`;

/** A condition on a field of the payload: `campaign = 42`, `to.city = "Bonn"`. */
export function condition(text) {
  const [, path, wanted] = /^\s*([^=]*?[^=\s])\s*=\s*(.*?)\s*$/s.exec(text) ?? [];
  if (!path) throw new Error(`field is "${text}": it must be a field, = and a value, such as campaign = 42`);
  return (job) => {
    const value = fieldOf(job.payload, path);
    return value !== undefined && (value === wanted || plainText(value) === compact(wanted));
  };
}

function fieldOf(payload, path) {
  const isObject = (value) => typeof value === "object" && value !== null && !JSON.isRawJSON?.(value);
  const own = (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined);
  return own(payload, path) ?? path.split(".").reduce(own, payload);
}

function compact(text) {
  try {
    return plainText(parseExact(text));
  } catch {
    return text;
  }
}

/** "12 of the first 200 jobs". */
export const countWords = (count, { jobs, more }) =>
  `${number(count)} of ${more ? "the first " : ""}${plural(jobs.length, "job")}`;
