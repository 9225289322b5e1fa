// The page: who may see it, which view is shown, and what surrounds it.

import { html, render, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { findToken, get } from "./api.js";
import { Door } from "./door.js";
import { About, Failure, State } from "./parts.js";
import { queuePath, useRoute } from "./route.js";

const VIEWS = {
  queues: { load: () => import("./queues.js").then((file) => file.Queues) },
  queue: { load: () => import("./queue.js").then((file) => file.Queue) },
  jobs: { title: "Jobs", load: () => import("./jobs.js").then((file) => file.Jobs) },
  job: { title: "Job", load: () => import("./job.js").then((file) => file.Job) },
  deadLetters: { title: "Dead letters", load: () => import("./dead_letters.js").then((file) => file.DeadLetters) },
  schedules: { title: "Schedules", load: () => import("./schedules.js").then((file) => file.Schedules) },
  schedule: { title: "Schedule", load: () => import("./schedule.js").then((file) => file.Schedule) },
};
const TABS = [["Overview", "queue"], ["Jobs", "jobs"], ["Dead letters", "deadLetters"], ["Schedules", "schedules"]];
const PATHS = { jobs: "jobs", deadLetters: "dead-letters", schedules: "schedules" };
const PARENTS = { job: "jobs", schedule: "schedules" };

function App({ found }) {
  const [open, setOpen] = useState(Boolean(found));
  const [refused, setRefused] = useState(false);
  const [about, setAbout] = useState({});
  const route = useRoute();
  useEffect(() => {
    const shut = () => { setRefused(true); setOpen(false); };
    addEventListener("token-refused", shut);
    return () => removeEventListener("token-refused", shut);
  }, []);
  useEffect(() => { if (open) get("/console/about").then(setAbout, (error) => setAbout({ error })); }, [open]);
  if (!open) return html`<${Door} refused=${refused} onOpen=${() => setOpen(true)} />`;
  return html`<${About.Provider} value=${about}>
    <a class="skip button" href="#main">Skip to content</a>
    <${Top} about=${about} />
    ${route.queue && html`<${QueueBar} route=${route} />`}
    <${Failure} error=${about.error} />
    <${View} key=${`${route.view} ${route.path}`} route=${route} />
  <//>`;
}

function Top({ about }) {
  return html`<header class="top">
    <a class="brand" href="/">Dueline</a>
    <span class="place">${about.deployment}${about.region && ` · ${about.region}`}</span>
    ${about.read_only && html`<${State} word="read-only" tone="warn" /><span class="place">started with <code>--read-only</code>: nothing can be changed</span>`}
    ${about.as && html`<span class="as" title=${about.as}>as ${about.as.replace(/^arn:[^:]*:[^:]*:[^:]*:/, "")}</span>`}
  </header>`;
}

function QueueBar({ route: { queue, view } }) {
  const shown = PARENTS[view] ?? view;
  return html`<nav class="tabs" aria-label=${`Queue ${queue}`}>
    <a href="/" class="up">Queues</a><span aria-hidden="true">/</span><a class="of" href=${queuePath(queue)}>${queue}</a>
    <ul>${TABS.map(([word, name]) => html`<li key=${name}><a aria-current=${name === shown ? "page" : undefined}
      href=${PATHS[name] ? queuePath(queue, PATHS[name]) : queuePath(queue)}>${word}</a></li>`)}</ul>
  </nav>`;
}

let first = true;

function View({ route }) {
  const [state, setState] = useState({});
  const main = useRef(null);
  const view = VIEWS[route.view];
  useEffect(() => {
    document.title = [route.id ?? route.name, view?.title, route.queue, "Dueline"].filter(Boolean).join(" · ");
    if (!first) main.current.focus({ preventScroll: true });
    first = false;
    view?.load().then((Shown) => setState({ Shown }), (error) => setState({ error: notLoaded(error) }));
  }, []);
  const { Shown, error } = state;
  return html`<main id="main" tabindex="-1" ref=${main}>
    ${!view && html`<h1>No such page</h1><p>There is nothing at ${route.path}. <a href="/">See the queues</a>.</p>`}
    <${Failure} error=${error} />
    ${Shown && html`<${Shown} ...${route} />`}
  </main>`;
}

const notLoaded = (error) => ({ title: "This view could not be loaded", detail: error.message });

findToken().then((found) => render(html`<${App} found=${found} />`, document.body));
