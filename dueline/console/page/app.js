// The page: the token, the view of the address, and what surrounds each view.

import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/preact-htm.js";
import { get, storedToken, takeTokenFromUrl } from "./api.js";
import { AllDeadLetters, AllSchedules, Search } from "./all_queues.js";
import { DeadLetters } from "./dead_letters.js";
import { Job } from "./job.js";
import { Jobs } from "./jobs.js";
import { ZONE } from "./format.js";
import { About, Button, Failure, State } from "./parts.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";
import { queuePath, useRoute } from "./route.js";
import { Schedule, Schedules } from "./schedules.js";

const VIEWS = { Queues, AllSchedules, AllDeadLetters, Search, Queue, Jobs, Job, DeadLetters, Schedules, Schedule };
const TOP = [["Queues", "/", "Queues"], ["Schedules", "/schedules", "AllSchedules"],
  ["Dead letters", "/dead-letters", "AllDeadLetters"]];
const TABS = [
  ["Overview", [], ["Queue"]],
  ["Jobs", ["jobs"], ["Jobs", "Job"]],
  ["Dead letters", ["dead-letters"], ["DeadLetters"]],
  ["Schedules", ["schedules"], ["Schedules", "Schedule"]],
];

function App() {
  const [isOpen, setOpen] = useState(storedToken() !== null);
  const [about, setAbout] = useState({});
  const route = useRoute();
  const View = VIEWS[route.view];
  const [broken] = useErrorBoundary();
  useEffect(() => addEventListener("token-refused", () => setOpen(false)), []);
  useEffect(() => {
    if (isOpen) get("/console/about").then(setAbout, (error) => setAbout({ error }));
  }, [isOpen]);
  if (broken) return html`<main class="view"><${Failure} error=${broken} /><a href="/">Queues</a></main>`;
  if (!isOpen) return NO_TOKEN;
  return html`<${About.Provider} value=${about}>
    <${Top} about=${about} route=${route} />
    ${route.queue && html`<${QueueBar} route=${route} />`}
    <${Failure} error=${about.error} />
    <main>${View ? html`<${View} ...${route} />`
      : html`<h1>No such page</h1><p>There is nothing at ${route.path}. <a href="/">See the queues</a>.</p>`}</main>
  <//>`;
}

function Top({ about, route: { view, query } }) {
  return html`<header class="top">
    <a class="brand" href="/">Dueline</a>
    <span class="muted">${about.deployment}${about.region && ` · ${about.region}`}</span>
    <nav class="tabs" aria-label="All queues"><ul>${TOP.map(([word, path, its]) => html`<li key=${word}>
      <a href=${path} aria-current=${its === view ? "page" : undefined}>${word}</a></li>`)}</ul></nav>
    <form class="row" role="search" aria-label="All queues" action="/search">
      <input type="search" name="text" aria-label="Whole id or key of a job, in all queues" placeholder="Whole id or key"
        defaultValue=${query.text} required spellcheck="false" autocomplete="off" />
      <${Button} type="submit">Search<//></form>
    <small title="All times are the reader's own, and each has UTC in its tooltip">Times in ${ZONE}</small>
    ${about.read_only && html`<${State} word="read-only" tone="warn" />
      <span class="muted">started with <code>--read-only</code>: nothing can be changed</span>`}
  </header>`;
}

function QueueBar({ route: { queue, view } }) {
  return html`<nav class="tabs" aria-label=${`Queue ${queue}`}>
    <a href="/">Queues</a><span aria-hidden="true">/</span><a class="of" href=${queuePath(queue)}>${queue}</a>
    <ul>${TABS.map(([word, below, views]) => html`<li key=${word}><a href=${queuePath(queue, ...below)}
      aria-current=${views.includes(view) ? "page" : undefined}>${word}</a></li>`)}</ul>
  </nav>`;
}

/** The page without a token, or with one of a console that has ended. */
const NO_TOKEN = html`<main class="door view">
  <h1>This page needs a console of your own</h1>
  <p>A console reads the deployment with the AWS credentials of the person who runs it. This tab has no token, or that
    of a console that has ended.</p>
  <ol>
    <li>Run <code>dueline console</code>. It opens a page of its own, with your credentials; in a tab beside that one,
      open the address that it printed.</li>
    <li>There, go to <code>${location.pathname + location.search}</code>, as this link does.</li>
  </ol>
</main>`;

// What is moved, such as the row of a queue in the sorted table, keeps the focus.
for (const put of [Node.prototype.insertBefore, Node.prototype.appendChild]) {
  Node.prototype[put.name] = function (...moved) {
    const { activeElement: focused } = document;
    put.apply(this, moved);
    if (document.activeElement !== focused) focused.focus({ preventScroll: true });
    return moved[0];
  };
}

// With the printed address in a tab that shows the first view: only the fragment changes.
addEventListener("hashchange", () => location.reload());
document.title = `${location.pathname.slice(1) || "queues"} · Dueline`;
takeTokenFromUrl();
const OLD = html`<main><p>This browser is too old: it would alter large numbers in payloads.</p></main>`;
render(JSON.rawJSON ? html`<${App} />` : OLD, document.body);
