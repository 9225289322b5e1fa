// The way of a job as steps in time, as far as the API tells it.

/** What each state means: its tone, and a sentence. */
export const STATES = {
  accepted: ["idle", "On its way to the table, or no such job was ever scheduled: an id alone does not tell."],
  scheduled: ["ok", "It waits in the table until it is due."],
  dispatched: ["ok", "It was handed to its queue."],
  running: ["ok", "A worker has it now."],
  succeeded: ["ok", "Done."],
  failed: ["bad", "Its attempts are used up."],
  skipped: ["warn", "It did not run: another run of its schedule had not ended."],
  cancelled: ["idle", "Nothing comes under its id: that is a promise."],
  cancel_requested: ["warn", "It may still come: it is in its queue or on its way there. Workers that ask skip it."],
  parked: ["bad", "It is in the dispatch dead-letter queue: dueline redrive --parked puts it back."],
  planned: ["idle", "In the table."],
  missed: ["warn", "It was missed, and not made up for."],
  forgotten: ["idle", "Past its retention: nothing is known of it any more."],
};

const HANDED_OVER = ["dispatched", "running", "succeeded", "failed", "skipped"];
const TO_COME = ["accepted", "scheduled"];

/** Steps {name, at, note, tone, ahead}: `at` is left out where it is not known, `ahead` are those to come. */
export function way({ state, due, route, attempts = 0, started, ended, error, moved_to }) {
  const [tone, meaning] = STATES[state];
  const isAhead = TO_COME.includes(state);
  const before = attempts === 2 ? "attempt 1" : `attempts 1 to ${attempts - 1}`;
  const outcome = !ended ? "Running." : error ? `Failed: ${error}.` : "";
  const steps = [
    [true, { name: "accepted", note: "When, the API does not tell." }],
    [route === "table" && state !== "accepted", { name: "scheduled", note: "In the table." }],
    [moved_to, { name: "moved", note: "Another job took its place." }],
    [state === "cancelled" && !moved_to, { name: "cancelled", note: meaning }],
    [state !== "cancelled", { name: "due", at: due, ahead: Date.parse(due) > Date.now() }],
    [state === "parked", { name: "parked", tone, note: meaning }],
    [isAhead || HANDED_OVER.includes(state), { name: "dispatched", note: "To its queue.", ahead: isAhead }],
    [attempts > 1, { name: before, tone: "warn", note: "Failed." }],
    [attempts, { name: `attempt ${attempts}`, at: started, note: outcome, tone: error ? "bad" : "ok" }],
    [state === "cancel_requested", { name: "cancel requested", tone, note: meaning }],
    [state === "dispatched", { name: attempts ? "next attempt" : "received", ahead: true, note: UNTOLD }],
    [ended && state !== "dispatched", { name: state, at: ended, tone, note: meaning }],
  ];
  return steps.flatMap(([isOne, step]) => (isOne ? [step] : []));
}

const UNTOLD = "Told only of queues with track: true.";
