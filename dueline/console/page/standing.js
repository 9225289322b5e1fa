// How a queue stands, in words; and which queues come first.

import { percent, plural, span } from "./format.js";

const LATE_SECONDS = 60;
const GRACE_SECONDS = 5;
const STILL_SECONDS = 150;
const ON_TIME_GOAL = 0.999 - 1e-9; // what sums of floats may lack

/** What is to be said of a queue, the worst first: [{word, tone, why, size}]. `size` orders queues that share a word. */
export function standingOf(queue) {
  if (queue.error) return [noAnswer(queue.error)];
  return [late, ticks, dead, paused, behind, onTime, limited].flatMap((say) => say(queue) ?? []);
}

const noAnswer = ({ status, detail }) =>
  status === 403 ? { word: "no access", tone: "idle", why: detail, size: 0 } : { word: "no answer", tone: "bad", why: detail, size: 0 };

const ticks = ({ fence_age }) =>
  fence_age === null
    ? { word: "no tick", tone: "bad", why: "A partition was never ticked: its jobs are not handed over", size: Infinity }
    : fence_age > STILL_SECONDS
      ? { word: "no tick", tone: "bad", why: `The last tick was ${span(fence_age)} ago, about a minute is well`, size: fence_age }
      : null;

const late = ({ lateness, overdue }) =>
  lateness > LATE_SECONDS || (overdue && lateness > GRACE_SECONDS)
    ? { word: "late", tone: "bad", why: `The oldest job not handed over is ${span(lateness)} past due`, size: lateness }
    : null;

const dead = ({ dead }) =>
  dead ? { word: "dead letters", tone: "bad", why: `${plural(dead, "job")} failed for good`, size: dead } : null;

const paused = ({ paused, rate, waiting }) =>
  paused || rate?.startsWith("0/")
    ? { word: paused ? "paused" : "stopped", tone: "warn", why: "Its workers begin no jobs", size: waiting }
    : null;

const behind = ({ waiting, in_flight, paused }) =>
  waiting > 100 && waiting > 10 * in_flight && !paused
    ? { word: "waiting", tone: "warn", why: `${plural(waiting, "job")} wait for workers`, size: waiting }
    : null;

export const isPoor = (share) => share !== null && share < ON_TIME_GOAL;

const onTime = ({ on_time }) =>
  isPoor(on_time)
    ? { word: "was late", tone: "warn", why: `${percent(on_time)} of the last hour's jobs were on time`, size: 1 - on_time }
    : null;

const limited = ({ rate }) =>
  rate && !rate.startsWith("0/") ? { word: "limited", tone: "idle", why: `Its rate is limited to ${rate}`, size: 0 } : null;

const WELL = "well";
const WORST_FIRST = ["no answer", "late", "no tick", "dead letters", "paused", "stopped", "waiting", "was late", "limited", WELL, "no access"];

/** The queues, worst first; of those that stand alike, by how badly, then by name. */
export function worstFirst(queues) {
  const ranked = queues.map((queue) => {
    const [worst] = standingOf(queue);
    return { queue, rank: WORST_FIRST.indexOf(worst?.word ?? WELL), size: worst?.size ?? 0 };
  });
  const compare = (a, b) => a.rank - b.rank || (a.size === b.size ? 0 : b.size - a.size) || byName(a.queue, b.queue);
  return ranked.sort(compare).map(({ queue }) => queue);
}

const byName = (a, b) => a.name.localeCompare(b.name, "en");

/** What all queues have together; those without an answer count as nothing. */
export function sumsOf(queues) {
  const sum = (field) => queues.reduce((all, queue) => all + (queue[field] ?? 0), 0);
  const bad = queues.filter((queue) => standingOf(queue).some(({ tone }) => tone === "bad"));
  return {
    bad: bad.length,
    lateness: Math.max(0, ...queues.map((queue) => queue.lateness ?? 0)),
    scheduled: sum("scheduled"),
    moreScheduled: queues.some((queue) => queue.more_scheduled),
    waiting: sum("waiting"),
    inFlight: sum("in_flight"),
    dead: sum("dead"),
    paused: queues.filter((queue) => queue.paused).length,
  };
}
