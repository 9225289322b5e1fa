// The schedules of a queue, by name.

import { html, useRef } from "./vendor/preact-htm.js";
import { get } from "./api.js";
import { Button, Empty, Failure, Freshness, Instant, Loading, State, Table, useDialog } from "./parts.js";
import { usePolled } from "./refresh.js";
import { queuePath } from "./route.js";
import { ruleText, ruleWords, ScheduleForm } from "./schedule_form.js";

const SECONDS = 30;
const STEP = 50;

export function Schedules({ queue }) {
  const most = useRef(STEP);
  const polled = usePolled(() => fetchSchedules(queue, most.current), SECONDS, queue);
  const [dialog, open, close] = useDialog();
  const closed = (done) => { close(); if (done) polled.again(); };
  const more = () => { most.current += STEP; polled.again(); };
  const { data, error } = polled;
  return html`<div class="view"><div class="head"><h1>Schedules</h1><${Freshness} polled=${polled} seconds=${SECONDS} /></div>
    <p class="row"><${Button} kind="primary" writes onClick=${() => open("new")}>New schedule …<//></p>
    <${Failure} error=${error} at=${polled.at} />
    ${!data && !error && html`<${Loading} what="schedules" />`}
    ${data && (data.schedules.length ? html`<${Table} caption=${`Schedules of ${queue}`} columns=${columns(queue)}
      rows=${data.schedules} keyOf=${(each) => each.schedule} stack />`
      : html`<${Empty}>This queue has no schedules. One makes jobs by a rule, again and again.<//>`)}
    ${data?.more && html`<p><${Button} onClick=${more}>Fetch ${STEP} more<//></p>`}
    ${dialog && html`<${ScheduleForm} queue=${queue} onClose=${closed} />`}</div>`;
}

async function fetchSchedules(queue, most) {
  const schedules = [];
  let next = null;
  do {
    const asked = new URLSearchParams({ limit: STEP, ...(next && { next }) });
    const page = await get(`/api/queues/${queue}/schedules?${asked}`);
    schedules.push(...page.schedules);
    next = page.next;
  } while (next && schedules.length < most);
  return { schedules, more: Boolean(next) };
}

const columns = (queue) => [
  { name: "name", label: "Schedule", head: true, cell: ({ schedule }) =>
    html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "rule wrap", label: "Rule", cell: (each) => html`${ruleWords(each)}<br /><code>${ruleText(each)}</code>` },
  { name: "zone", label: "Zone", cell: (each) => each.zone },
  { name: "next", label: "Next run", cell: ({ next: [run], paused }) =>
    run ? html`<${Instant} at=${run.nominal} /> <span class="muted"><${Instant} at=${run.nominal} near /></span>`
      : html`<span class="none">${paused ? "paused" : "none any more"}</span>` },
  { name: "states", label: "State", cell: ({ paused }) =>
    html`<${State} word=${paused ? "paused" : "runs"} tone=${paused ? "warn" : "ok"} />` },
];
