// How a queue stands, in words; and which queues come first.

import { percent, plural, span } from "./format.js";

const LATE_SECONDS = 60;
const GRACE_SECONDS = 5;
export const STILL_SECONDS = 150;
const ON_TIME_GOAL = 0.999 - 1e-9; // what sums of floats may lack

const isStopped = ({ rate }) => rate?.startsWith("0/");
export const isPoor = (share) => share !== null && share < ON_TIME_GOAL;

/** What may be said of a queue, the worst first: a word, its tone, whether it is so, why, and how badly. */
const SAYINGS = [
  ["late", "bad", (queue) => queue.lateness > (queue.overdue ? GRACE_SECONDS : LATE_SECONDS),
    ({ lateness }) => `The oldest job not handed over is ${span(lateness)} past due`, ({ lateness }) => lateness],
  ["no tick", "bad", ({ fence_age: age }) => age === null || age > STILL_SECONDS,
    ({ fence_age: age }) => (age === null
      ? "A partition was never ticked: its jobs are not handed over"
      : `The last tick was ${span(age)} ago, about a minute is well`), ({ fence_age: age }) => age ?? Infinity],
  ["dead letters", "bad", ({ dead }) => dead,
    ({ dead }) => `${plural(dead, "job")} failed for good`, ({ dead }) => dead],
  ["paused", "warn", ({ paused }) => paused, () => "Its workers begin no jobs", ({ waiting }) => waiting],
  ["stopped", "warn", (queue) => isStopped(queue) && !queue.paused,
    () => "Its workers begin no jobs: its rate is 0", ({ waiting }) => waiting],
  ["waiting", "warn", ({ waiting, in_flight, paused }) => waiting > 100 && waiting > 10 * in_flight && !paused,
    ({ waiting }) => `${plural(waiting, "job")} wait for workers`, ({ waiting }) => waiting],
  ["was late", "warn", (queue) => isPoor(queue.on_time),
    (queue) => `${percent(queue.on_time)} of the last hour's jobs were on time`, (queue) => 1 - queue.on_time],
  ["limited", "idle", (queue) => queue.rate && !isStopped(queue),
    ({ rate }) => `Its rate is limited to ${rate}`, () => 0],
];
const NO_ANSWER = -1;
const WELL = SAYINGS.length;
const NO_ACCESS = WELL + 1;

/** What is to be said of a queue, the worst first: [{word, tone, why, rank, size}]; both of the last order queues. */
export function standingOf(queue) {
  const { status, detail: why } = queue.error ?? {};
  if (status === 403) return [{ word: "no access", tone: "idle", why, rank: NO_ACCESS, size: 0 }];
  if (queue.error) return [{ word: "no answer", tone: "bad", why, rank: NO_ANSWER, size: 0 }];
  return SAYINGS.flatMap(([word, tone, isSo, why, size], rank) =>
    isSo(queue) ? [{ word, tone, why: why(queue), rank, size: size(queue) }] : []);
}

/** The queues, worst first; of those that stand alike, by how badly, then by name. */
export function worstFirst(queues) {
  const worst = (queue) => standingOf(queue)[0] ?? { rank: WELL, size: 0 };
  const ranked = queues.map((queue) => ({ name: queue.name, queue, ...worst(queue) }));
  const bySize = (a, b) => (a.size === b.size ? a.name.localeCompare(b.name, "en") : b.size - a.size);
  return ranked.sort((a, b) => a.rank - b.rank || bySize(a, b)).map(({ queue }) => queue);
}

/** What all queues have together; those without an answer count as nothing. */
export function sumsOf(queues) {
  const sum = (field) => queues.reduce((all, queue) => all + (queue[field] ?? 0), 0);
  return {
    bad: queues.filter((queue) => standingOf(queue)[0]?.tone === "bad").length,
    lateness: Math.max(0, ...queues.map((queue) => queue.lateness ?? 0)),
    scheduled: sum("scheduled"),
    moreScheduled: queues.some((queue) => queue.more_scheduled),
    waiting: sum("waiting"),
    inFlight: sum("in_flight"),
    dead: sum("dead"),
    paused: queues.filter((queue) => queue.paused).length,
  };
}
