// One queue: how it is, what is coming, how it was, and what it is set to.

import { html } from "./vendor/preact-htm.js";
import { get } from "./api.js";
import { Controls } from "./controls.js";
import { Coming, Past, lastHour } from "./figures.js";
import { atLeast, number, percent, plural, relative, span } from "./format.js";
import { Facts, Failure, Freshness, Instant, Loading, State, Table, Tile } from "./parts.js";
import { usePolled } from "./refresh.js";
import { queuePath } from "./route.js";
import { isPoor, standingOf } from "./standing.js";

const SECONDS = 10;
const FIGURES_SECONDS = 60;
const SPANS = [1, 3, 6, 24];

export function Queue({ queue: name, query, path }) {
  const hours = SPANS.includes(Number(query.hours)) ? Number(query.hours) : 6;
  const asked = `/console${queuePath(name)}`;
  const polled = usePolled(() => get(`/api${queuePath(name)}`), SECONDS, name);
  const due = usePolled(() => get(`${asked}/due?hours=${hours}`), SECONDS * 3, `${name} ${hours}`);
  const past = usePolled(() => get(`${asked}/figures?hours=${hours}`), FIGURES_SECONDS, `${name} ${hours}`);
  const queue = polled.data && { ...polled.data, name, ...lastHour(polled, past.data?.series?.[name]) };
  const again = () => [polled, due].forEach((each) => each.again());
  return html`<div class="view">
    <div class="head"><h1>${name}</h1>${queue && html`<${Controls} queue=${queue} onDone=${again} />`}
      <${Freshness} polled=${polled} seconds=${SECONDS} /></div>
    ${queue && html`<${Failure} error=${polled.error} at=${polled.at} what="the queue" /><${Why} queue=${queue} /><${Now} queue=${queue} />`}
    ${!queue && html`<${Loading} error=${polled.error} what="the queue" />`}
    <${Spans} hours=${hours} path=${path} />
    <${Coming} name=${name} polled=${due} hours=${hours} />
    <${Past} name=${name} polled=${past} hours=${hours} />
    <div class="charts">
      ${queue?.levels?.length > 1 && html`<${Levels} levels=${queue.levels} />`}
      ${queue && html`<${Settings} queue=${queue} />`}
    </div></div>`;
}

function Why({ queue }) {
  const said = standingOf(queue);
  return html`<ul class="why">${said.map(({ word, tone, why }) => html`<li key=${word}><${State} ...${{ word, tone }} /> ${why}.</li>`)}
    ${!said.length && html`<li><${State} word="well" tone="ok" /> Jobs are handed over in time, and none failed for good.</li>`}</ul>`;
}

const Spans = ({ hours, path }) => html`<nav class="spans" aria-label="Span of the charts"><span class="muted">Span</span>
  ${SPANS.map((each) => html`<a key=${each} href=${`${path}?hours=${each}`} aria-current=${each === hours ? "true" : undefined}>${each} h</a>`)}
</nav>`;

function Now({ queue }) {
  const { name, lateness, on_time: onTime, fence_age: fence } = queue;
  const rate = queue.rate ?? "no limit";
  return html`<div class="tiles">
    <${Tile} label="Late" value=${span(lateness)} tone=${lateness > 60 ? "bad" : ""} note="oldest job" />
    <${Tile} label="On time" value=${onTime === null ? "–" : percent(onTime)} tone=${isPoor(onTime) ? "warn" : ""}
      note=${onTime === null ? "not known" : "of the last hour"} />
    <${Tile} label="Dead" value=${number(queue.dead)} tone=${queue.dead ? "bad" : ""} note="failed for good" href=${queuePath(name, "dead-letters")} />
    <${Tile} label="Waiting" value=${number(queue.waiting)} note="for workers" />
    <${Tile} label="In flight" value=${number(queue.in_flight)} note="at workers" />
    <${Tile} label="Delayed" value=${number(queue.delayed)} note="due in a moment" />
    <${Tile} label="Scheduled" value=${atLeast(queue.scheduled, queue.more_scheduled)} note="for later" href=${queuePath(name, "jobs")} />
    <${Tile} label="Next due" value=${html`<${Instant} at=${queue.next_due} near />`} note=${queue.next_due && html`<${Instant} at=${queue.next_due} />`} />
    <${Tile} label="Last tick" value=${fence === null ? "never" : relative(-1000 * fence, 0)} tone=${fence === null || fence > 150 ? "bad" : ""} note="60 s is well" />
    <${Tile} label="Rate" value=${rate} tone=${rate.startsWith("0/") ? "warn" : ""} note="all its workers" />
  </div>`;
}

const COLUMNS = [
  ["priority", "Priority"], ["waiting", "Waiting"], ["in_flight", "In flight"], ["delayed", "Delayed"],
].map(([name, label]) => ({ name, label, end: true, head: name === "priority", cell: (level) => number(level[name]) }));

function Levels({ levels }) {
  const rows = levels.map((level, index) => ({ ...level, priority: index + 1 }));
  return html`<section class="panel"><h2>Levels</h2><p class="muted">Each is an SQS queue of its own, 1 the most urgent.</p>
    <${Table} caption="Levels" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.priority} /></section>`;
}

function Settings({ queue }) {
  const taking = queue.taking ?? queue.partitions;
  const partitions = taking === queue.partitions ? number(taking) : `${number(queue.partitions)}, of which ${number(taking)} take jobs`;
  return html`<section class="panel"><h2>Settings</h2><p class="muted">They are set in <code>queues.yaml</code>, and heeded once that is deployed.</p>
    <${Facts} facts=${[
      ["Partitions", partitions, "Slices of the queue, each with its own tick"],
      ["Levels", plural(queue.priorities, "priority", "priorities"), "Each is an SQS queue of its own"],
      ["Retention", span(queue.retention), "How long after its due time a job is kept, and may still be sent"],
      ["Direct horizon", span(queue.direct_horizon), "What is due within it goes straight to the queue, and is not in the table"],
      ["Precise", queue.precise ? "yes" : "no", "Jobs come up to 1.25 s early, and its workers wait that out"],
      ["Tracking", queue.track ? "yes" : "no", "Whether look-ups tell what workers noted of a job"],
    ]} /></section>`;
}
