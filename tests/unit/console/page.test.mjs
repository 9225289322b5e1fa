// Functions and components of the console's page, without a browser. Run by test_page.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";
import v8 from "node:v8";
import vm from "node:vm";

if (!JSON.rawJSON) {
  // Node 20 has it behind a flag, which only a new context heeds.
  v8.setFlagsFromString("--harmony-json-parse-with-source");
  globalThis.JSON = vm.runInNewContext("JSON");
}
mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (act, ms = 1) => wait(act, ms); // Node's mock fires none without a delay
const listeners = new Set();
globalThis.document = {
  hidden: false,
  addEventListener: (_, listener) => listeners.add(listener),
  removeEventListener: (_, listener) => listeners.delete(listener),
};
globalThis.sessionStorage = { getItem: () => "token" };
globalThis.requestAnimationFrame = queueMicrotask;
globalThis.cancelAnimationFrame = () => {};
process.env.TZ = "Europe/Berlin";
const PAGE = "../../../dueline/console/page";

const { get, parseResponse, polling, post, readEach } = await import(`${PAGE}/api.js`);
const { byNextRun } = await import(`${PAGE}/all_queues.js`);
const { dueWords, fill: fillMinutes, latenessPoints } = await import(`${PAGE}/charts.js`);
const { DeadLetterOf, DeadLetters, readable, Redrive } = await import(`${PAGE}/dead_letters.js`);
const { fieldText, instant, inZone, percent, relative, seconds, span } = await import(`${PAGE}/format.js`);
const { facts, STATES } = await import(`${PAGE}/job.js`);
const { fetchDue, fetchJobs } = await import(`${PAGE}/job_list.js`);
const { current, HEALTHY, lastHour, noteIdle, sortWorstFirst, statesOf } = await import(`${PAGE}/queue_state.js`);
const { totals } = await import(`${PAGE}/queues.js`);
const { fetchSchedules, NextRuns } = await import(`${PAGE}/schedules.js`);
const { h, render } = await import(`${PAGE}/vendor/preact-htm.js`);

const plain = (text) => text.replaceAll("\u00a0", " ");
const WELL = { scheduled: 5, more_scheduled: false, overdue: false, fence_age: 42, waiting: 0, in_flight: 0, dead: 0 };
const aQueue = (name, given) => ({ name, ...WELL, paused: false, rate: null, lateness: 0, on_time: 1, error: null, ...given });
const UNKNOWN = { error: { detail: "may not" }, fence_age: null, dead: null, rate: null, scheduled: null, lateness: null };
const FORBIDDEN = { ...UNKNOWN, error: { detail: "may not", status: 403 } };

test("queues are sorted by state and name", () => {
  const worst = [
    aQueue("unanswered", UNKNOWN), aQueue("a-late", { lateness: 61, dead: 5 }), aQueue("b-late", { lateness: 900 }),
    aQueue("overdue", { overdue: true, lateness: 6 }), aQueue("never-ticked", { fence_age: null }), aQueue("ticked-long-ago", { fence_age: 200 }),
    aQueue("dead", { dead: 1, paused: true }), aQueue("paused", { paused: true }),
    aQueue("stopped", { rate: "0/s" }), aQueue("behind", { waiting: 500, in_flight: 2 }), aQueue("was-late", { on_time: 0.99 }),
    aQueue("limited", { rate: "5/s" }), aQueue("a-healthy"), aQueue("b-healthy"), aQueue("another-team's", FORBIDDEN),
  ];
  assert.deepEqual(sortWorstFirst(worst.toReversed()).map(({ name }) => name), worst.map(({ name }) => name));
});

test("a queue has all states that apply", () => {
  const words = (given) => statesOf(aQueue("emails", given)).map(({ word }) => word);
  assert.deepEqual(words({ lateness: 61, dead: 1, paused: true }), ["late", "dead letters", "paused"]);
  assert.deepEqual(words({ lateness: 60, overdue: true, fence_age: 150, waiting: 100 }), ["late"]);
  assert.deepEqual(words({ lateness: 60, fence_age: 150, waiting: 100, on_time: null }), []);
});

test("a queue that nobody works on is waiting at the second look", () => {
  const look = (at, given) => statesOf(aQueue("emails", noteIdle({ queue: "emails", waiting: 2, in_flight: 0, ...given }, at)));
  assert.deepEqual([look(0), look(1000), look(5000, { in_flight: 1 }), look(10000), look(12000)], [[], [], [], [], []]);
  const [{ word, tone, why }] = look(20000);
  assert.deepEqual([word, tone, why], ["waiting", "warn", "2 jobs wait and none is being processed: is a worker running?"]);
  assert.match(look(30000, { waiting: 1 })[0].why, /^1 job waits and none/);
  for (const given of [{ paused: true }, { rate: "0/s" }]) assert.equal(look(40000, given).some(({ word }) => word === "waiting"), false);
  assert.deepEqual(look(50000, { waiting: 0 }), []);
  assert.match(HEALTHY.why, /^No job is late in being dispatched/);
});

test("tiles sum known figures only, and say of how many", () => {
  const tilesOf = (...queues) => totals(queues).map(({ value, note }) => `${plain(value)} ${note}`);
  const unanswered = { name: "c", error: { detail: "may not" }, lateness: 900 };
  const unlogged = aQueue("d", { lateness: undefined, on_time: undefined, dead: 1 });
  const tiles = tilesOf(aQueue("a", { dead: 2, lateness: 3 }), aQueue("b", { more_scheduled: true }), unanswered, unlogged);
  assert.deepEqual(tiles, ["3 of 4 queues", "3 s 2 of 4 queues", "3 3 of 4 queues", "0 3 of 4 queues", "0 3 of 4 queues", "0 3 of 4 queues", "15+ 3 of 4 queues"]);
  assert.deepEqual(tilesOf(aQueue("a")).slice(0, 3), ["0 of 1 queue", "0 s oldest job past due", "0 failed for good"]);
  assert.deepEqual(tilesOf({ ...unanswered, error: { status: 403 } }), Array(7).fill("– 0 of 1 queue"));
});

test("schedules are sorted by next run, the paused last", () => {
  const runs = (schedule, at) => ({ schedule, next: at ? [{ scheduled_for: at }] : [] });
  const queues = [{ schedules: [runs("paused"), runs("second", "2027-01-04T09:00:00.000Z")] }, { error: {} },
    { schedules: [runs("first", "2027-01-04T08:00:00.000Z")] }];
  assert.deepEqual(byNextRun(queues).map(({ schedule }) => schedule), ["first", "second", "paused"]);
});

test("queues are listed at once, and filled as they answer", async () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  const shown = [];
  const held = new Map();
  globalThis.fetch = async () => Response.json({ queues: names.map((queue) => ({ queue })) });
  const read = (queue) => new Promise((resolve, reject) => held.set(queue, { resolve, reject }));
  const all = readEach(read, ({ queues }) => shown.push(Array.from(queues, ({ dead, error, reading }) => (reading ? "reading" : error ?? dead))));
  await settle(0);
  assert.deepEqual([shown, [...held.keys()]], [[Array(6).fill("reading")], ["a", "b", "c", "d"]]);
  held.get("c").resolve({ dead: 0 });
  held.get("d").reject({ status: 503 });
  await settle(0);
  held.get("d").reject("no answer");
  await settle(0);
  assert.deepEqual([shown.at(-1), held.size], [["reading", "reading", 0, "no answer", "reading", "reading"], 6]);
  for (const { resolve } of held.values()) resolve({ dead: 1 });
  assert.equal((await all).queues.map(({ dead }) => dead).join(), "1,1,0,,1,1");
});

test("a queue that has not answered has no figures and no state", () => {
  const queues = [{ name: "a", reading: true }, { name: "b", reading: true }, aQueue("c", { dead: 2 })];
  assert.deepEqual(statesOf(queues[0]).map(({ word }) => word), ["reading …"]);
  assert.deepEqual(totals(queues.slice(0, 2)).map(({ value, note }) => `${value} ${note}`), Array(7).fill("– 0 of 2 queues"));
  assert.deepEqual(totals(queues).map(({ note }) => note), Array(7).fill("1 of 3 queues"));
  assert.deepEqual(sortWorstFirst(queues).map(({ name }) => name), ["c", "a", "b"]);
});

test("a time is shown in any zone that the browser knows", () => {
  const zones = ["America/New_York", undefined, "Mars/Olympus"];
  assert.deepEqual(zones.map((zone) => inZone("2027-01-04T08:00:00Z", zone)),
    ["2027-01-04 03:00:00 America/New_York", "2027-01-04 09:00:00 Europe/Berlin", "2027-01-04 08:00:00 UTC"]);
});

test("spans have two units, and shares are rounded down", () => {
  assert.deepEqual([0, 0.006, 0.9999, 1.42, 9.97, 59.6, 3661, 604800].map(span).map(plain), ["0 s", "6 ms", "1.0 s", "1.4 s", "10 s", "1 min", "1 h 1 min", "7 d"]);
  assert.deepEqual([1, 0.99999, 0.9995, 0].map(percent).map(plain), ["100 %", "99.99 %", "99.95 %", "0.00 %"]);
  assert.deepEqual([relative(0, 95000), relative(200000, 0), relative(0, 0)].map(plain), ["1 min 35 s ago", "in 3 min 20 s", "now"]);
});

test("lateness comes from the logs or an overdue job", () => {
  const at = 7200000;
  const series = { lateness: [[6000, 99], [7100, 4]], on_time: [[3000, 90], [7000, 15], [7100, 10]], delayed: [[7000, 15]] };
  assert.deepEqual(lastHour({ data: { next_due: null }, at }, { series: { emails: series } }, "emails"), { lateness: 4, overdue: false, on_time: 0.625 });
  const overdue = { data: { next_due: new Date(at - 90000).toISOString() }, at };
  const idle = { lateness: [], on_time: [], delayed: [] };
  assert.deepEqual(lastHour(overdue, { series: { emails: idle } }, "emails"), { lateness: 90, overdue: true, on_time: null });
  assert.equal(lastHour(overdue, undefined, "emails").lateness, 90);
  assert.equal(lastHour({ data: { next_due: null }, at }, undefined, "emails").lateness, undefined);
});

test("a queue is never healthy without current figures", () => {
  const data = { series: { emails: { lateness: [], on_time: [[4000, 10]], delayed: [] } } };
  const words = (figures) => {
    const queue = aQueue("emails", lastHour({ data: { next_due: null }, at: 7200000 }, current(figures), "emails"));
    return [queue.on_time, ...statesOf(queue).map(({ word }) => word)];
  };
  assert.deepEqual(words({ data, age: 60 }), [1]);
  const without = { data: { series: {} }, age: 60 };
  for (const figures of [{ data, age: 60, error: { detail: "denied" } }, { data, age: 600 }, without, {}]) {
    assert.deepEqual(words(figures), [undefined, "not known"]);
  }
});

test("a chart has every minute of its span", () => {
  const span = { from: "1970-01-01T00:02:00Z", to: "1970-01-01T00:05:00Z", gap: 0 };
  assert.deepEqual(fillMinutes([[180, 7]], span), [[120, 180, 240], [0, 7, 0]]);
  const many = { counted: 1000, more: true, until: "2027-01-04T08:00:00Z", overdue: 2, minutes: [[600, 3], [1200, 4]] };
  const words = plain(textOf(dueWords(many)));
  assert.match(words, /^1,000 or more jobs: counting ended at <2027-01-04T08:00:00Z>, .* 2 overdue\.\s+Most at <1200000>: 4 in a minute\.$/s);
  assert.equal(dueWords({ counted: 0, more: false }), "Nothing is due.");
});

test("lateness is 0 only where all dispatched was on time", () => {
  const series = { on_time: [[60, 5], [120, 2], [180, 1], [240, 3]], delayed: [[60, 0], [120, 4], [300, 1]], lateness: [[180, 30]] };
  assert.deepEqual(latenessPoints(series), [[60, 0], [180, 30], [240, 0]]);
});

test("polling waits for answers and pauses in a hidden tab", async () => {
  const requests = [];
  const updates = [];
  const poll = polling(() => new Promise((resolve, reject) => requests.push({ resolve, reject })), 5, (news) => updates.push(news));
  mock.timers.tick(20000);
  assert.equal(requests.length, 1);
  poll.now();
  requests[0].reject("gone");
  await settle(0);
  assert.deepEqual([requests.length, updates[0]], [2, { error: "gone" }]);
  document.hidden = true;
  requests[1].resolve("data");
  await settle(0);
  mock.timers.tick(60000);
  assert.deepEqual([requests.length, updates[1].data, "error" in updates[1]], [2, "data", true]);
  document.hidden = false;
  listeners.forEach((seen) => seen());
  poll.stop();
  requests[2].resolve("too late");
  await settle(0);
  assert.deepEqual([requests.length, updates.length, listeners.size], [3, 2, 0]);
});

test("a change without an answer may have been done", async () => {
  globalThis.fetch = async () => { throw Object.assign(new Error(), { name: "TimeoutError" }); };
  await assert.rejects(post("/api/queues/emails/pause", {}), { detail: /It may have been done: check first\.$/ });
  await assert.rejects(get("/api/queues"), { detail: /Views load again by themselves\.$/ });
});

const DUE = "2020-01-01T00:00:00.000Z";

test("numbers of payloads are exact, others are plain", () => {
  const payload = '{"price":1.0,"e":1e400,"part":0.10000000000000000555,"big":-9007199254740993,"__proto__":{"n":2.50}}';
  const job = parseResponse(`{"fence_age":42.0,"payload":${payload}}`);
  assert.deepEqual([job.fence_age, JSON.stringify(job.payload)], [42, payload]);
});

test("next runs show each zone's time once", () => {
  const next = [{ scheduled_for: DUE, local: "2020-01-01T01:00:00+01:00" }];
  const labels = (zone) => NextRuns({ next, zone }).props.columns.map(({ label }) => label);
  assert.deepEqual(labels("Asia/Tokyo"), ["Your time", "In", "Asia/Tokyo", "UTC"]);
  for (const zone of ["Europe/Berlin", "UTC"]) assert.deepEqual(labels(zone), ["Your time", "In", "UTC"]);
});

test("due jobs are counted by minute, up to a thousand", async () => {
  const now = Date.now();
  const minute = Math.ceil(now / 60000) * 60;
  const jobsAt = (...seconds) => seconds.map((at) => ({ due: new Date(at * 1000).toISOString() }));
  const page = (jobs, next) => { globalThis.fetch = async () => Response.json({ jobs, next }); };
  page(jobsAt(minute - 7200, minute - 120, minute, minute + 59, minute + 60), null);
  const { from, until, ...all } = await fetchDue("emails");
  assert.equal(JSON.stringify(all), JSON.stringify({ minutes: [[minute, 2], [minute + 60, 1]], overdue: 2, counted: 5, more: false }));
  assert.equal(Date.parse(until) - Date.parse(from), 6 * 3600000);
  page(jobsAt(...Array.from({ length: 100 }, (_, at) => minute + at)), "more");
  const many = await fetchDue("emails");
  assert.deepEqual([many.counted, many.more, Date.parse(many.until)], [1000, true, (minute + 99) * 1000]);
});

test("unreadable rows are counted over all pages", async () => {
  const job = { jobs: [{ id: "a" }], next: "b", unreadable: 2 };
  globalThis.fetch = async (url) => Response.json(`${url}`.includes("next=b") ? { jobs: [], next: null, unreadable: 1 } : job);
  const { jobs, more, unreadable } = await fetchJobs("emails", {}, 100);
  assert.deepEqual([jobs.length, more, unreadable], [1, false, 3]);
});

test("schedules are read over pages of deleted ones", async () => {
  const live = { schedules: [{ schedule: "live" }], next: null, unreadable: 2 };
  const pages = { "": { schedules: [], next: "a49", unreadable: 1 }, a49: { schedules: [], next: "b49" }, b49: live };
  globalThis.fetch = async (path) => Response.json(pages[new URL(path, "http://x").searchParams.get("next") ?? ""]);
  const { schedules: [only], unreadable, next } = await fetchSchedules("emails");
  assert.deepEqual([only.schedule, unreadable, next], ["live", 3, null]);
  let read = 0;
  globalThis.fetch = async () => Response.json((read += 1, { schedules: [], next: "more" }));
  assert.deepEqual([(await fetchSchedules("emails")).next, read], ["more", 20]);
});

test("times are parsed as typed, and wrong ones named", () => {
  assert.deepEqual(["90", "1.5m", "2h", " 3 d "].map(seconds), [90, 90, 7200, 259200]);
  for (const text of ["", "-1", "1.", "5 years", "1e3"]) assert.throws(() => seconds(text), /delay is .* such as 15m/, text);
  assert.equal(instant("2027-01-04T09:00:00"), "2027-01-04T08:00:00.000Z");
  assert.equal(fieldText("2027-01-04T08:00:00.000Z"), "2027-01-04T09:00:00");
  assert.deepEqual([undefined, "garbage", "+275760-09-13T00:00:00Z"].map(fieldText), ["", "", ""]);
  assert.throws(() => instant(""), /time is ""/);
});

test("a key that nothing recorded is not shown as none", () => {
  const keyOf = (job) => facts({ id: "j", due: DUE, route: "table", ...job }).find(([name]) => name === "Key")[1];
  const jobs = [{ key: "k" }, { route: "direct" }, { priority: 1 }, { priority: 1, key: "k" }];
  assert.deepEqual(jobs.map(keyOf), ["k", "not recorded", undefined, "k"]);
});

test("every state of openapi.json has a meaning", async () => {
  const { JobAnswer, RunAnswer } = JSON.parse(readFileSync("../../../docs/openapi.json", "utf8")).components.schemas;
  for (const { enum: states } of [JobAnswer.properties.state, RunAnswer.properties.state]) for (const state of states) assert(STATES[state], state);
});

/** Run a component's hooks without a DOM. Return a function that finds the props of what it rendered, by name or text. */
function mount(Component, props) {
  let tree;
  const Shell = () => {
    tree = Component(props);
    return null;
  };
  render(h(Shell), { childNodes: [], firstChild: null });
  const all = (node) => [node].flat(Infinity).flatMap((each) => (typeof each === "function" ? all(each({ dead: 3 }))
    : each?.props ? [each, ...all(each.props.children)] : []));
  return (name) => all(tree).find(({ props }) => [props.verb && "dialog", props.children, Object.keys(props)].flat().includes(name))?.props;
}

/** Let answers and frames arrive, and so many milliseconds pass. */
async function settle(ms = 1) {
  for (let turn = 0; turn < 5; turn += 1) {
    mock.timers.tick(turn === 2 ? ms : 1);
    await new Promise(setImmediate);
  }
}

async function press(find, button) {
  find(button).onClick();
  await settle();
}

/** Answer the last request. */
async function answer(requests, content, status) {
  requests.at(-1).answer(content, status);
  await settle();
}

/** Hold requests: return their paths and bodies, each with `answer` to call. */
function holdRequests() {
  const requests = [];
  globalThis.fetch = (path, { method, body }) => new Promise((resolve) => {
    const answer = (content, status = 200) => resolve(Response.json(content, { status }));
    requests.push({ path: `${method} ${path}`, body, answer });
  });
  return requests;
}

/** Answer the last start of a run over dead letters, and then its end. */
async function endRun(requests, ended) {
  requests.findLast(({ path }) => path.startsWith("POST")).answer({ run: "r" });
  await settle();
  await answer(requests, ended);
}

test("chosen errors stay until new dead letters are read", async () => {
  const requests = holdRequests();
  const find = mount(DeadLetters, { queue: "emails" });
  await settle();
  await answer(requests, { dead: 12 });
  const look = async (name, ended) => {
    await press(find, name);
    await endRun(requests, ended);
  };
  const groups = [{ error: "ReadTimeout", kind: null, count: 12 }];
  const seen = { state: "done", result: { groups, received: 12, total: 12, hidden: 0 } };
  await look("Inspect", seen);
  find("choose").choose({ groups: seen.result.groups });
  await settle();
  await look("Inspect again", { state: "failed", error: { detail: "ExpiredToken" } });
  assert.deepEqual(find("choose").chosen.groups, groups);
  await look("Inspect again", seen);
  assert.deepEqual(find("choose").chosen.groups, []);
});

const RESULT = { received: 9, changed: 1, missing: 1, hidden: 0, not_received: 20, stay: [], failed: [] };
const LETTERS = ["m-1", "m-2"].map((message) => ({ message, id: null, error: "KeyError", kind: null }));

test("chosen dead letters are put back by their messages alone", async () => {
  const requests = holdRequests();
  let reads = 0;
  const find = mount(Redrive, { queue: "emails", groups: GROUPS, letters: LETTERS, onDone: () => { reads += 1; } });
  const done = find("dialog").act(() => {});
  await settle();
  assert.deepEqual([requests[0].body, reads], ['{"messages":["m-1","m-2"]}', 0]);
  await endRun(requests, { state: "done", result: RESULT });
  const words = plain(textOf(await done));
  assert.match(words, /1 job put back into the queue, of 9 read\..*1 not found: put back, deleted/s);
  assert.match(words, /About 20 more were there and did not arrive/);
  assert.equal(reads, 1, "the list behind the dialog is read again before the dialog is closed");
});

const GROUPS = [{ error: "KeyError", kind: "welcome", count: 60 }];

test("groups are put back, the chosen ones or all that were shown", async () => {
  for (const groups of [GROUPS, []]) {
    const requests = holdRequests();
    const find = mount(Redrive, { queue: "emails", groups, letters: [], look: { groups: GROUPS } });
    assert.match(plain(textOf(find("dialog").children)), /^Puts those of KeyError of welcome: 60 jobs as inspected/);
    find("dialog").act(() => {});
    await settle();
    assert.equal(requests[0].body, '{"groups":[{"error":"KeyError","kind":"welcome"}]}');
  }
});

test("a run that failed shows what it had done", async () => {
  for (const [count, words] of [[320, "320 jobs were"], [1, "1 job was"]]) {
    const requests = holdRequests();
    const failed = assert.rejects(mount(Redrive, { queue: "emails", letters: LETTERS })("dialog").act(() => {}),
      { detail: `ExpiredToken. Before that, at least ${words} put back into the queue.` });
    await settle();
    await endRun(requests, { state: "failed", error: { detail: "ExpiredToken" }, result: { ...RESULT, changed: count } });
    await failed;
  }
});

test("a job's dead letter may be among those not read", async () => {
  for (const [total, words] of [[12, /^None of the 12 dead letters read is this\s+job's: it was put back/], [30, /: about 18 more were not read\. .*emails --id j/s]]) {
    const requests = holdRequests();
    const find = mount(DeadLetterOf, { job: { id: "j", queue: "emails", state: "failed" } });
    await press(find, "Find it");
    await endRun(requests, { state: "done", result: { received: 12, total } });
    await answer(requests, { dead_letters: [], count: 0 });
    assert.match(plain(textOf(find("role").children)), words);
  }
});

test("a payload is shown as JSON exactly, as text, or where it is", () => {
  const payloads = [{ payload_text: '{"n":1.0}' }, { payload_text: "<xml>" }, { payload_at: { bytes: 5000, bucket: "b", key: "k" } }];
  assert.deepEqual(payloads.map(readable), ['{\n  "n": 1.0\n}', "<xml>", "5,000 bytes in S3, s3://b/k"]);
});

/** The text of what a component rendered; an instant is <its value>. */
const textOf = (node) => [node].flat(Infinity).map((each) => (each?.type?.name === "Instant" ? `<${each.props.at}>` : each?.props
  ? typeof each.type === "function" ? textOf(each.type(each.props)) : textOf(each.props.children)
  : ["string", "number"].includes(typeof each) ? each : "")).join("");
