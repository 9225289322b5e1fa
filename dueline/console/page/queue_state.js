// The state of a queue, in words, and the order of queues.

import { percent, plural, span } from "./format.js";

const HOUR = 3600;
const RECENT_SECONDS = 300;
const OLD_SECONDS = 180;
const LATE_SECONDS = 60;
const GRACE_SECONDS = 5;
// Less than the ten seconds between two looks, and more than between two clicks on Refresh.
const IDLE_MS = 8000;
export const STALE_SECONDS = 150;
const ON_TIME_GOAL = 0.999 - 1e-9; // sums of floats may be a little less

const isStopped = ({ rate }) => rate?.startsWith("0/");
export const isPoor = (share) => share != null && share < ON_TIME_GOAL;

/** The states that a queue may have, the worst first: a word, its tone, whether it applies, and why. */
const STATES = [
  ["late", "bad", (queue) => queue.lateness > (queue.overdue ? GRACE_SECONDS : LATE_SECONDS),
    ({ lateness }) => `The oldest job not yet dispatched is ${span(lateness)} past due`],
  ["no tick", "bad", ({ fence_age: age }) => age === null || age > STALE_SECONDS,
    ({ fence_age: age }) => (age === null
      ? "A partition has never had a tick: its jobs are not dispatched"
      : `The last tick was ${span(age)} ago; at least one a minute is normal`)],
  ["dead letters", "bad", ({ dead }) => dead, ({ dead }) => `${plural(dead, "job")} failed for good`],
  ["paused", "warn", ({ paused }) => paused, () => "Its workers start no jobs"],
  ["stopped", "warn", (queue) => isStopped(queue) && !queue.paused,
    () => "Its workers start no jobs: its rate is 0"],
  ["waiting", "warn", ({ idle, waiting, in_flight, ...queue }) =>
    (idle || (waiting > 100 && waiting > 10 * in_flight)) && !queue.paused && !isStopped(queue),
    ({ idle, waiting }) => plural(waiting, "job waits", "jobs wait")
      + (idle ? " and none is being processed: is a worker running?" : " for workers")],
  ["was late", "warn", (queue) => isPoor(queue.on_time),
    (queue) => `${percent(queue.on_time)} of the last hour's jobs were on time`],
  ["limited", "idle", (queue) => queue.rate && !isStopped(queue), ({ rate }) => `Its rate is limited to ${rate}`],
  ["not known", "idle", (queue) => queue.on_time === undefined,
    () => "The functions' logs were not read: whether the last hour's jobs were on time is not known"],
];
const NO_ANSWER = -1;
const NO_ACCESS = STATES.length + 1;
const NOT_READ = NO_ACCESS + 1;
export const READING = "reading …";

/** That of a queue in none of these states. */
export const HEALTHY = { word: "healthy", tone: "ok", why: "No job is late in being dispatched, and none failed for good" };

/** The states of a queue, the worst first: [{word, tone, why, rank}]; the last orders queues. */
export function statesOf(queue) {
  const { status, detail: why } = queue.error ?? {};
  if (queue.reading) return [{ word: READING, tone: "idle", why: "It has not answered yet", rank: NOT_READ }];
  if (status === 403) return [{ word: "no access", tone: "idle", why, rank: NO_ACCESS }];
  if (queue.error) return [{ word: "no answer", tone: "bad", why, rank: NO_ANSWER }];
  return STATES.flatMap(([word, tone, applies, why], rank) =>
    applies(queue) ? [{ word, tone, why: why(queue), rank }] : []);
}

/** The queues, the worst first; those of the same state by name. */
export function sortWorstFirst(queues) {
  const rankOf = (queue) => statesOf(queue)[0]?.rank ?? STATES.length;
  return queues.toSorted((a, b) => rankOf(a) - rankOf(b) || a.name.localeCompare(b.name, "en"));
}

const idleSince = new Map();

/** A queue's overview, `idle` if jobs waited and none was in flight at this look and at one before it. */
export function noteIdle(overview, now = Date.now()) {
  const { queue, waiting, in_flight } = overview;
  const since = waiting > 0 && !in_flight ? idleSince.get(queue) ?? now : undefined;
  idleSince.set(queue, since);
  return { ...overview, idle: now - since >= IDLE_MS };
}

/** The figures that were polled, undefined where they could not be read or are old. */
export const current = ({ data, error, age }) => (error || age > OLD_SECONDS ? undefined : data);

/**
 * How late a queue is, by its overview and its figures: lateness, on_time, overdue. Both are undefined where they are not
 * known; `on_time` is null where nothing was dispatched. A job that is overdue is late whatever the figures say.
 */
export function lastHour({ data, at }, metrics, name) {
  const series = metrics?.series[name];
  const overdue = data.next_due ? Math.max(0, (at - Date.parse(data.next_due)) / 1000) : 0;
  if (!series) return { lateness: overdue || undefined, overdue: overdue > 0, on_time: undefined };
  const since = (points, seconds) => points.filter(([when]) => when >= at / 1000 - seconds);
  const lateness = Math.max(overdue, ...since(series.lateness, RECENT_SECONDS).map(([, value]) => value));
  return { lateness, overdue: overdue > 0, on_time: shareOf(since(series.on_time, HOUR), since(series.delayed, HOUR)) };
}

export const total = (points) => points.reduce((sum, [, value]) => sum + value, 0);

export function shareOf(onTime, delayed) {
  const all = total(onTime) + total(delayed);
  return all ? total(onTime) / all : null;
}
