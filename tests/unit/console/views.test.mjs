// What the views of jobs decide, without a browser. Run by test_page.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import v8 from "node:v8";
import vm from "node:vm";

if (!JSON.rawJSON) {
  // Node 20 has it behind a flag, which only a new context heeds.
  v8.setFlagsFromString("--harmony-json-parse-with-source");
  globalThis.JSON = vm.runInNewContext("JSON");
}
process.env.TZ = "Europe/Berlin";
const PAGE = "../../../dueline/console/page";
const { parseJson } = await import(`${PAGE}/json.js`);
const { condition, found, matcher, payloadText } = await import(`${PAGE}/matching.js`);
const { STATES, way } = await import(`${PAGE}/way.js`);
const { fieldText, instant, seconds, SPAN } = await import(`${PAGE}/when.js`);

const holds = (text, payload) => condition(text)({ payload });
const DUE = "2020-01-01T00:00:00.000Z";
const names = (job) => way({ due: DUE, route: "table", ...job }).map(({ name, ahead }) => (ahead ? `(${name})` : name));

test("a field of a payload is picked by its value, be it written as JSON or as text", () => {
  const payload = { campaign: 42, to: { city: "Bonn", "a.b": null }, "x.y": [1, 2], on: true };
  for (const text of ["campaign = 42", "to.city=Bonn", 'to.city = "Bonn"', "x.y = [1,  2]", "on = true", " campaign=42 "]) assert(holds(text, payload), text);
  for (const text of ["campaign = 4", "campaign = 420", "to.city = Bon", "on = 1", "none = undefined", "__proto__ = {}", "to = null"]) assert(!holds(text, payload), text);
  assert(holds("a = b = c", { a: "b = c" }) && !holds("a = 1", null) && !holds("0 = x", "x-ray") && holds("a = 1", { a: "1" }));
});

test("numbers come out as they went in, and are told from their neighbours", () => {
  const kept = '{"cid":9007199254740993,"of":[-9007199254740993,1e400],"near":9007199254740991,"part":0.1}';
  const payload = parseJson(kept);
  assert.equal(JSON.stringify(payload), kept);
  assert.equal(payload.near + payload.part, 9007199254740991.1);
  assert(holds("cid = 9007199254740993", payload) && holds("of = [-9007199254740993, 1e400]", payload));
  for (const text of ["cid = 9007199254740992", "cid.rawJSON = 9007199254740993"]) assert(!holds(text, payload), text);
  assert(matcher({ text: "9007199254740993" })({ payload }) && !matcher({ text: "9007199254740992" })({ payload }));
});

test("a field that is no condition is refused with what one is", () => {
  for (const text of ["campaign", "= 42", "  = "]) assert.throws(() => condition(text), /it must be a field, = and a value/, text);
});

test("jobs are picked by all filters at once, and a text is looked for in whatever case", () => {
  const jobs = [{ tenant: "a", payload: { to: "Ann" } }, { tenant: "b", payload: { to: "ann" } }, { tenant: "a", payload_text: "no JSON" }];
  const picked = (query) => jobs.map(matcher(query)).map(Number).join("");
  assert.deepEqual([{}, { tenant: "a" }, { text: "ANN" }, { tenant: "a", text: "ann" }, { field: "to = ann" }].map(picked), ["111", "101", "110", "100", "010"]);
  assert.equal(payloadText({ payload_at: { bytes: 6000000, bucket: "b", key: "k" } }), "6,000,000 bytes in S3, s3://b/k");
  assert.equal(found(12, { jobs: Array(200), more: true }), "12 of the first 200 jobs");
});

test("times are what people type, and what is none is refused by its name", () => {
  assert.deepEqual(["90", "1.5m", "2h", " 3 d "].map((text) => seconds(text)), [90, 90, 7200, 259200]);
  for (const text of ["", "-1", "5 years", "1e3"]) assert.throws(() => seconds(text, "every"), /every is .* such as 15m/, text);
  assert.deepEqual(["1.5m", "1.", ".", ""].map((text) => SPAN.test(text)), [true, false, false, false]);
  assert.equal(instant("2027-01-04T09:00:00"), "2027-01-04T08:00:00.000Z");
  assert.equal(fieldText("2027-01-04T08:00:00.000Z"), "2027-01-04T09:00:00");
  assert.deepEqual([undefined, "garbage", "+275760-09-13T00:00:00Z"].map(fieldText), ["", "", ""]);
  assert.throws(() => instant("", "from"), /from is ""/);
});

test("a job's way tells what was, and what is to come", () => {
  assert.deepEqual(names({ state: "scheduled", due: "9999-01-01T00:00:00Z" }), ["accepted", "scheduled", "(due)", "(dispatched)"]);
  assert.deepEqual(names({ state: "cancelled", moved_to: "x" }), ["accepted", "scheduled", "moved"]);
  assert.deepEqual(names({ state: "dispatched", route: "direct" }), ["accepted", "due", "dispatched", "(received)"]);
  const tried = { attempts: 3, started: DUE, ended: DUE, error: "KeyError" };
  assert.deepEqual(names({ state: "dispatched", ...tried }), ["accepted", "scheduled", "due", "dispatched", "attempts 1 to 2", "attempt 3", "(next attempt)"]);
  assert.deepEqual(names({ state: "failed", ...tried }).slice(-2), ["attempt 3", "failed"]);
  assert.deepEqual(names({ state: "cancel_requested" }), ["accepted", "scheduled", "due", "cancel requested"]);
});

test("no state of a job is without its meaning", async () => {
  const { readFileSync } = await import("node:fs");
  const { JobAnswer, RunAnswer } = JSON.parse(readFileSync("../../../docs/openapi.json", "utf8")).components.schemas;
  for (const { enum: states } of [JobAnswer.properties.state, RunAnswer.properties.state]) for (const state of states) assert(STATES[state], state);
});
