// What is looked at over all queues at once: their schedules, their dead letters, and a job that may be in any of them.

import { html, useEffect } from "./vendor/preact-htm.js";
import { get, readEach, usePolled } from "./api.js";
import { number, plural } from "./format.js";
import { JobState } from "./job.js";
import { Instant, JobLink, NoAnswer, Table, Unreadable, View } from "./parts.js";
import { QUEUES_SECONDS, usePolledQueues } from "./queues.js";
import { queuePath } from "./route.js";
import { fetchSchedules, More, SCHEDULE_COLUMNS } from "./schedules.js";

const SCHEDULES_SECONDS = 60;

const link = (queue, below, text) => html`<a href=${queuePath(queue, ...below)}>${text}</a>`;
const answered = (queues) => queues.filter(({ error, reading }) => !error && !reading);
const sum = (queues, field) => queues.reduce((total, queue) => total + queue[field], 0);
/** What there is none of, once all queues were read: only among those that answered, if not all did. */
const none = (queues, what) => !queues.some(({ reading }) => reading)
  && html`The queues ${answered(queues).length < queues.length && "that answered "}have ${what}.`;

export function AllSchedules() {
  const polled = usePolled((report) => readEach(fetchSchedules, report), SCHEDULES_SECONDS);
  return html`<${View} title="Schedules" polled=${polled} seconds=${SCHEDULES_SECONDS} what="schedules">${
    ({ queues }) => html`<${NoAnswer} queues=${queues} /><${Unreadable} rows=${sum(answered(queues), "unreadable")} />
      ${queues.map(({ queue, next }) => next && html`<${More} key=${queue} queue=${queue} />`)}
      <${Table} stack caption="Schedules by next run" columns=${SCHEDULES} rows=${byNextRun(queues)}
        keyOf=${({ queue, schedule }) => `${queue} ${schedule}`} empty=${none(queues, "no schedules")} />`}<//>`;
}

/** The schedules of all queues by next run; those that have none come last. */
export const byNextRun = (queues) => queues.flatMap(({ schedules }) => schedules ?? [])
  .map((schedule) => [schedule.next[0]?.scheduled_for ?? "~", schedule])
  .sort(([a], [b]) => (a < b ? -1 : Number(a > b))).map(([, schedule]) => schedule);

const QUEUE = { name: "queue", label: "Queue", cell: ({ queue }) => link(queue, [], queue) };
const [SCHEDULE, ...OTHERS] = SCHEDULE_COLUMNS;
const SCHEDULES = [SCHEDULE, QUEUE, ...OTHERS];

export function AllDeadLetters() {
  const polled = usePolledQueues();
  return html`<${View} title="Dead letters" polled=${polled} seconds=${QUEUES_SECONDS} what="the queues">${({ queues }) => {
    const known = answered(queues);
    const rows = known.filter(({ dead }) => dead).sort((a, b) => b.dead - a.dead);
    return html`<${NoAnswer} queues=${queues} />${known.length > 0 && html`
      <p><strong>${plural(sum(rows, "dead"), "job")}</strong> in the dead-letter queues of ${number(known.length)} of${" "}
        ${plural(queues.length, "queue")}, as SQS estimates.</p>
      <${Table} stack caption="Dead letters by queue" columns=${DEAD} rows=${rows} keyOf=${({ queue }) => queue}
        empty=${none(queues, "no dead letters")} />`}`;
  }}<//>`;
}

const DEAD = [
  { name: "name", label: "Queue", head: true, cell: ({ queue }) => link(queue, ["dead-letters"], queue) },
  { name: "dead", label: "Dead letters", end: true, cell: ({ queue, dead }) => link(queue, ["dead-letters"], number(dead)) },
];

export function Search({ query }) {
  const text = (query.text ?? "").trim();
  const polled = usePolled((report) => readEach(jobOf(text), report), 0, text);
  const only = polled.data && theOnly(polled.data.queues);
  useEffect(() => only && location.replace(queuePath(only.queue, "jobs", only.id)), [only]);
  return html`<${View} title="Search" polled=${polled} seconds=${0} what="the job">${({ queues }) => html`
    <p>Jobs with the id or key <code>${text}</code>:</p><${NoAnswer} queues=${queues} />
    <${Table} stack caption="Jobs with this id or key" columns=${JOBS} rows=${found(queues)} keyOf=${({ id }) => id}
      empty=${none(queues, "no such job: the search needs a whole id, as under Attributes and in tooltips, or a whole key")} />`}<//>`;
}

const ID = /^([a-z0-9-]{1,60})\.\d{1,3}\.[dt]\.\d{1,13}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Return a function that reads the job with an id or a key of a queue: {job}, null where it has none. */
const jobOf = (text) => async (queue) => {
  const jobs = `/api${queuePath(queue, "jobs")}`;
  const job = ID.exec(text)?.[1] === queue ? await orNull(get(`${jobs}/${text}`)) : null;
  // A key may look like an id.
  return { job: job ?? await orNull(get(`${jobs}?${new URLSearchParams({ key: text })}`)) };
};

const orNull = (answer) => answer.catch((error) => {
  if (error.code === "job_not_found") return null;
  throw error;
});

const found = (queues) => queues.flatMap(({ job }) => job ?? []);

/** The only job with an id or key; undefined where there are others, or may be in a queue that did not answer. */
function theOnly(queues) {
  const jobs = found(queues);
  return answered(queues).length === queues.length && jobs.length === 1 ? jobs[0] : undefined;
}

const JOBS = [
  { name: "name", label: "Job", head: true, cell: ({ id }) => html`<${JobLink} id=${id} />` },
  QUEUE,
  { name: "states", label: "State", cell: ({ state }) => html`<${JobState} state=${state} />` },
  { name: "due", label: "Due", cell: ({ due }) => html`<${Instant} at=${due} />` },
];
