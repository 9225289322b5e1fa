// Which of the jobs that were fetched are looked for.

import { number, plural } from "./format.js";
import { parseJson } from "./json.js";

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
  const isObject = (value) => typeof value === "object" && value !== null && !JSON.isRawJSON?.(value);
  const own = (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined);
  return own(payload, path) ?? path.split(".").reduce(own, payload);
}

function compact(text) {
  try {
    return JSON.stringify(parseJson(text));
  } catch {
    return text;
  }
}

/** "12 of the first 200 jobs". */
export const found = (count, { jobs, more }) =>
  `${number(count)} of ${more ? "the first " : ""}${plural(jobs.length, "job")}`;
