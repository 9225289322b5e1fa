// The schedules of a queue, by name.

import { html } from "./vendor/preact-htm.js";
import { get, usePolled } from "./api.js";
import { Button, Empty, Instant, State, Table, useDialog, View } from "./parts.js";
import { queuePath } from "./route.js";
import { ruleText, ruleWords, ScheduleForm } from "./schedule_form.js";

const SECONDS = 30;
const PAGE = 50;

export function Schedules({ queue, query: { next = "" } }) {
  const asked = new URLSearchParams({ limit: PAGE, ...(next && { next }) });
  const polled = usePolled(() => get(`/api/queues/${queue}/schedules?${asked}`), SECONDS, `${queue} ${next}`);
  const [dialog, open] = useDialog(polled.again);
  const above = html`<p class="row">
    <${Button} kind="primary" writes onClick=${() => open(ScheduleForm, { queue })}>New schedule …<//></p>${dialog}`;
  return html`<${View} title="Schedules" above=${above} polled=${polled} seconds=${SECONDS} what="schedules">
    ${({ schedules, next: more }) => html`${schedules.length
      ? html`<${Table} caption=${`Schedules of ${queue}`} columns=${columns(queue)} rows=${schedules}
          keyOf=${(each) => each.schedule} stack />`
      : html`<${Empty}>This queue has no schedules. One makes jobs by a rule, again and again.<//>`}
      ${more && html`<p><a href=${`?${new URLSearchParams({ next: more })}`}>The next ones</a></p>`}`}<//>`;
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
