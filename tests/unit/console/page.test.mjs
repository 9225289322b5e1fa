// What the console's page decides, without a browser. Run by test_page.py.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

mock.timers.enable();
const listeners = new Set();
globalThis.document = {
  hidden: false,
  addEventListener: (_, listener) => listeners.add(listener),
  removeEventListener: (_, listener) => listeners.delete(listener),
};
const PAGE = "../../../dueline/console/page";

const { comingWords, filled, grouped, lastHour } = await import(`${PAGE}/figures.js`);
const { percent, rateWords, relative, span } = await import(`${PAGE}/format.js`);
const { get, polling, post } = await import(`${PAGE}/api.js`);
const { queuePath, routeOf } = await import(`${PAGE}/route.js`);
const { standingOf, sumsOf, worstFirst } = await import(`${PAGE}/standing.js`);

const plain = (text) => text.replaceAll("\u00a0", " ");
const WELL = { scheduled: 5, more_scheduled: false, overdue: false, fence_age: 42, waiting: 0, in_flight: 0, dead: 0 };
const aQueue = (name, given) => ({ name, ...WELL, paused: false, rate: null, lateness: 0, on_time: 1, error: null, ...given });
const UNKNOWN = { error: { detail: "may not" }, fence_age: null, dead: null, rate: null, scheduled: null, lateness: null };
const FORBIDDEN = { ...UNKNOWN, error: { detail: "may not", status: 403 } };

test("the worst queue is first, then the next, by how badly and by name", () => {
  const worst = [
    aQueue("unanswered", UNKNOWN), aQueue("very-late", { lateness: 900 }), aQueue("late", { lateness: 61, dead: 5 }),
    aQueue("overdue", { overdue: true, lateness: 6 }), aQueue("never-ticked", { fence_age: null }), aQueue("ticked-long-ago", { fence_age: 200 }),
    aQueue("many-dead", { dead: 9 }), aQueue("one-dead", { dead: 1, paused: true }), aQueue("paused", { paused: true }),
    aQueue("stopped", { rate: "0/s" }), aQueue("behind", { waiting: 500, in_flight: 2 }), aQueue("was-late", { on_time: 0.99 }),
    aQueue("limited", { rate: "5/s" }), aQueue("a-well"), aQueue("b-well"), aQueue("another-team's", FORBIDDEN),
  ];
  assert.deepEqual(worstFirst(worst.toReversed()).map(({ name }) => name), worst.map(({ name }) => name));
});

test("a queue tells all that is wrong with it, and nothing where all is well", () => {
  const words = (given) => standingOf(aQueue("emails", given)).map(({ word }) => word);
  assert.deepEqual(words({ lateness: 61, dead: 1, paused: true }), ["late", "dead letters", "paused"]);
  assert.deepEqual(words({ lateness: 60, overdue: true, fence_age: 150, waiting: 100 }), ["late"]);
  assert.deepEqual(words({ lateness: 60, fence_age: 150, waiting: 100, on_time: null }), []);
});

test("queues that did not answer add nothing to the sums", () => {
  const sums = sumsOf([aQueue("a", { dead: 2, lateness: 3 }), aQueue("b", { more_scheduled: true }), aQueue("c", UNKNOWN)]);
  assert.deepEqual({ ...sums }, { bad: 2, lateness: 3, scheduled: 10, moreScheduled: true, waiting: 0, inFlight: 0, dead: 2, paused: 0 });
});

test("figures are told in two units at most, and a share is never rounded up", () => {
  assert.deepEqual([0, 0.35, 9.97, 59.6, 3661, 604800].map(span).map(plain), ["0 s", "0.3 s", "10 s", "1 min", "1 h 1 min", "7 d"]);
  assert.deepEqual([1, 0.99999, 0.9995, 0].map(percent).map(plain), ["100 %", "99.99 %", "99.95 %", "0.00 %"]);
  assert.deepEqual([relative(0, 95000), relative(200000, 0), relative(0, 0)].map(plain), ["1 min 35 s ago", "in 3 min 20 s", "now"]);
  assert.deepEqual(["1000/m", null].map(rateWords), ["1,000 a minute", "no limit"]);
});

test("an address names a view and what it shows, and nothing else does", () => {
  const job = { view: "Job", path: "/queues/a-b/jobs/x.1", query: { from: "1" }, queue: "a-b", id: "x.1" };
  assert.deepEqual(routeOf(queuePath("a-b", "jobs", "x.1"), "?from=1"), job);
  assert.deepEqual(["/", "/queues/a/dead-letters", "/queues/", "/queues/a/nothing", "/queues/%zz"].map((path) => routeOf(path).view), ["Queues", "DeadLetters", undefined, undefined, undefined]);
});

test("a queue's lateness and share of the last hour are those of CloudWatch, or of a job that is overdue", () => {
  const at = 7200000;
  const series = { lateness: [[6000, 99], [7100, 4]], on_time: [[3000, 90], [7000, 15], [7100, 10]], delayed: [[7000, 15]] };
  assert.deepEqual(lastHour({ data: { next_due: null }, at }, series), { lateness: 4, overdue: false, on_time: 0.625 });
  const overdue = { data: { next_due: new Date(at - 90000).toISOString() }, at };
  assert.deepEqual(lastHour(overdue, undefined), { lateness: 90, overdue: true, on_time: null });
});

test("a chart has every step of its span, and more than is counted is said", () => {
  const span = { from: "1970-01-01T00:02:00Z", to: "1970-01-01T00:05:00Z", step: 60, gap: 0 };
  assert.deepEqual(filled([[180, 7]], span), [[120, 180, 240], [0, 7, 0]]);
  assert.deepEqual(grouped([[600, 1], [660, 2], [1200, 4]], 600), [[600, 3], [1200, 4]]);
  const many = { counted: 1000, more: true, until: "2027-01-04T08:00:00Z", overdue: 2 };
  assert.match(plain(comingWords(many, [[600, 3], [1200, 4]], 600)), /^1,000 or more jobs: counting ended at 2027-01-04 \d\d:\d\d:00, .* 2 overdue\. Most at \d\d:20: 4 in 10 min\.$/);
  assert.equal(comingWords({ counted: 0, more: false, overdue: 0 }, [], 60), "Nothing is due.");
});

async function settled() {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

test("it asks again once an answer is there, never twice at a time, and not while the tab is hidden", async () => {
  const asked = [];
  const told = [];
  const poll = polling(() => new Promise((resolve, reject) => asked.push({ resolve, reject })), 5, (news) => told.push(news));
  mock.timers.tick(20000);
  assert.equal(asked.length, 1);
  poll.now();
  asked[0].reject("gone");
  await settled();
  assert.deepEqual([asked.length, told[0]], [2, { error: "gone" }]);
  document.hidden = true;
  asked[1].resolve("data");
  await settled();
  mock.timers.tick(60000);
  assert.deepEqual([asked.length, told[1].data, "error" in told[1]], [2, "data", true]);
  document.hidden = false;
  listeners.forEach((seen) => seen());
  poll.stop();
  asked[2].resolve("too late");
  await settled();
  assert.deepEqual([asked.length, told.length, listeners.size], [3, 2, 0]);
});

test("a change without an answer may have been done, and is not said to be tried again", async () => {
  globalThis.sessionStorage = { getItem: () => "token" };
  globalThis.fetch = async () => { throw Object.assign(new Error(), { name: "TimeoutError" }); };
  await assert.rejects(post("/api/queues/emails/pause", {}), { detail: /It may have been done: look, then try again\.$/ });
  await assert.rejects(get("/api/queues"), { detail: /Views ask again by themselves\.$/ });
});
