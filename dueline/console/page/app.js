// The page: who may see it, which view is shown, and what surrounds it.

import { html, render, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { get, keptToken, takeToken } from "./api.js";
import { DeadLetters } from "./dead_letters.js";
import { Door } from "./door.js";
import { Job } from "./job.js";
import { Jobs } from "./jobs.js";
import { About, Failure, State } from "./parts.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";
import { queuePath, useRoute } from "./route.js";
import { Schedule } from "./schedule.js";
import { Schedules } from "./schedules.js";

const VIEWS = {
  queues: Queues, queue: Queue, jobs: Jobs, job: Job, deadLetters: DeadLetters, schedules: Schedules, schedule: Schedule,
};
const TABS = [
  ["Overview", [], ["queue"]],
  ["Jobs", ["jobs"], ["jobs", "job"]],
  ["Dead letters", ["dead-letters"], ["deadLetters"]],
  ["Schedules", ["schedules"], ["schedules", "schedule"]],
];

function App() {
  const [state, setState] = useState(keptToken() ? "open" : "shut");
  const [about, setAbout] = useState({});
  const route = useRoute();
  useEffect(() => addEventListener("token-refused", () => setState("refused")), []);
  useEffect(() => {
    if (state === "open") get("/console/about").then(setAbout, (error) => setAbout({ error }));
  }, [state]);
  if (state !== "open") return html`<${Door} refused=${state === "refused"} onOpen=${() => setState("open")} />`;
  return html`<${About.Provider} value=${about}>
    <a class="skip button" href="#main">Skip to content</a>
    <${Top} about=${about} />
    ${route.queue && html`<${QueueBar} route=${route} />`}
    <${Failure} error=${about.error} />
    <${Shown} key=${route.path} route=${route} />
  <//>`;
}

function Top({ about }) {
  return html`<header class="top">
    <a class="brand" href="/">Dueline</a>
    <span class="muted">${about.deployment}${about.region && ` · ${about.region}`}</span>
    ${about.read_only && html`<${State} word="read-only" tone="warn" />
      <span class="muted">started with <code>--read-only</code>: nothing can be changed</span>`}
    ${about.as && html`<small class="as" title=${about.as}>as ${about.as.split(":").slice(5).join(":")}</small>`}
  </header>`;
}

function QueueBar({ route: { queue, view } }) {
  return html`<nav class="tabs" aria-label=${`Queue ${queue}`}>
    <a href="/">Queues</a><span aria-hidden="true">/</span><a class="of" href=${queuePath(queue)}>${queue}</a>
    <ul>${TABS.map(([word, below, views]) => html`<li key=${word}>
      <a aria-current=${views.includes(view) ? "page" : undefined} href=${queuePath(queue, ...below)}>${word}</a></li>`)}</ul>
  </nav>`;
}

let first = true;

function Shown({ route }) {
  const main = useRef(null);
  const View = VIEWS[route.view];
  useEffect(() => {
    document.title = [route.id ?? route.name, route.view, route.queue, "Dueline"].filter(Boolean).join(" · ");
    if (!first) main.current.focus({ preventScroll: true });
    first = false;
  }, []);
  return html`<main id="main" tabindex="-1" ref=${main}>
    ${View ? html`<${View} ...${route} />`
      : html`<h1>No such page</h1><p>There is nothing at ${route.path}. <a href="/">See the queues</a>.</p>`}
  </main>`;
}

takeToken();
render(html`<${App} />`, document.body);
