// The schedules of a queue, by name.

import { html, useRef } from "./vendor/preact-htm.js";
import { get } from "./api.js";
import { Button, Empty, Instant, State, Table, useDialog, View } from "./parts.js";
import { usePolled } from "./refresh.js";
import { queuePath } from "./route.js";
import { ruleText, ruleWords, ScheduleForm } from "./schedule_form.js";

const SECONDS = 30;
const STEP = 50;

export function Schedules({ queue }) {
  const most = useRef(STEP);
  const polled = usePolled(() => fetchSchedules(queue, most.current), SECONDS, queue);
  const [dialog, open] = useDialog(polled.again);
  const fetchMore = () => {
    most.current += STEP;
    polled.again();
  };
  const above = html`<p class="row">
    <${Button} kind="primary" writes onClick=${() => open(ScheduleForm, { queue })}>New schedule …<//></p>${dialog}`;
  return html`<${View} title="Schedules" above=${above} polled=${polled} seconds=${SECONDS} what="schedules">
    ${({ schedules, more }) => html`${schedules.length
      ? html`<${Table} caption=${`Schedules of ${queue}`} columns=${columns(queue)} rows=${schedules}
          keyOf=${(each) => each.schedule} stack />`
      : html`<${Empty}>This queue has no schedules. One makes jobs by a rule, again and again.<//>`}
      ${more && html`<p><${Button} onClick=${fetchMore}>Fetch ${STEP} more<//></p>`}`}<//>`;
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

export const RunState = ({ paused }) =>
  html`<${State} word=${paused ? "paused" : "runs"} tone=${paused ? "warn" : "ok"} />`;

const columns = (queue) => [
  { name: "name", label: "Schedule", head: true,
    cell: ({ schedule }) => html`<a href=${queuePath(queue, "schedules", schedule)}>${schedule}</a>` },
  { name: "rule wrap", label: "Rule", cell: (each) => html`${ruleWords(each)}<br /><code>${ruleText(each)}</code>` },
  { name: "zone", label: "Zone", cell: ({ zone }) => zone },
  { name: "next", label: "Next run", cell: ({ next: [run], paused }) => (run
    ? html`<${Instant} at=${run.nominal} /> <span class="muted"><${Instant} at=${run.nominal} near /></span>`
    : html`<span class="none">${paused ? "paused" : "none any more"}</span>`) },
  { name: "states", label: "State", cell: RunState },
];
