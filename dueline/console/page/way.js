// The way of a job as steps in time, as far as the API tells it.

const HANDED_OVER = ["dispatched", "running", "succeeded", "failed", "skipped"];
const TO_COME = ["accepted", "scheduled"];

/** What each state means: its tone, and a sentence. */
export const STATES = {
  accepted: ["idle", "On its way to the table, or no such job was ever scheduled: an id alone does not tell."],
  scheduled: ["ok", "It waits in the table until it is due."],
  dispatched: ["ok", "It was handed to its queue."],
  running: ["ok", "A worker has it now."],
  succeeded: ["ok", "Done."],
  failed: ["bad", "Its attempts are used up."],
  skipped: ["warn", "It did not run: another run of its schedule had not ended."],
  cancelled: ["idle", "It never comes: that is a promise."],
  cancel_requested: ["warn", "It may still come: it is in its queue or on its way there. Workers that ask skip it."],
  parked: ["bad", "It is in the dispatch dead-letter queue: dueline redrive --parked puts it back."],
  planned: ["idle", "In the table."],
  missed: ["warn", "It was missed, and not made up for."],
  forgotten: ["idle", "Past its retention: nothing is known of it any more."],
};

/** Steps {name, at, note, tone, ahead}: `at` is left out where it is not known, `ahead` are those to come. */
export function way(job) {
  const { state, due, route, attempts = 0 } = job;
  const steps = [{ name: "accepted", note: "When, the API does not tell." }];
  if (route === "table" && state !== "accepted") steps.push({ name: "scheduled", note: "In the table." });
  if (state === "cancelled") steps.push(taken(job));
  const dueStep = { name: "due", at: due, ahead: Date.parse(due) > Date.now() };
  if (TO_COME.includes(state)) return [...steps, dueStep, { name: "dispatched", note: "To its queue.", ahead: true }];
  if (state === "cancelled") return steps;
  if (state === "parked") return [...steps, dueStep, { name: "parked", tone: "bad", note: STATES.parked[1] }];
  if (HANDED_OVER.includes(state)) steps.push(dueStep, { name: "dispatched", note: "To its queue." });
  if (attempts > 1) steps.push({ name: attempts === 2 ? "attempt 1" : `attempts 1 to ${attempts - 1}`, tone: "warn", note: "Failed." });
  if (attempts) steps.push(last(job));
  if (state === "cancel_requested") steps.push({ name: "cancel requested", tone: "warn", note: STATES[state][1] });
  if (state === "dispatched") steps.push({ name: attempts ? "next attempt" : "received", ahead: true, note: UNTOLD });
  if (job.ended && state !== "dispatched") steps.push({ name: state, at: job.ended, tone: STATES[state][0], note: STATES[state][1] });
  return steps;
}

const UNTOLD = "Told only of queues with track: true.";

function taken(job) {
  const note = job.moved_to ? "Another job took its place." : STATES.cancelled[1];
  return { name: job.moved_to ? "moved" : "cancelled", note };
}

function last({ attempts, started, ended, error, state }) {
  const note = ended ? (error ? `Failed: ${error}.` : state === "skipped" ? "Skipped." : "") : "Running.";
  return { name: `attempt ${attempts}`, at: started, note, tone: error ? "bad" : "ok" };
}
