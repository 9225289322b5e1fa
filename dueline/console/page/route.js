// Which view an address means, and going from one to another without loading the page anew.

import { useEffect, useState } from "./vendor/preact-htm.js";

// No name of a queue or a schedule and no id needs an escape.
const VIEWS = {
  queues: /^\/$/,
  queue: /^\/queues\/(?<queue>[^/%]+)$/,
  jobs: /^\/queues\/(?<queue>[^/%]+)\/jobs$/,
  job: /^\/queues\/(?<queue>[^/%]+)\/jobs\/(?<id>[^/%]+)$/,
  deadLetters: /^\/queues\/(?<queue>[^/%]+)\/dead-letters$/,
  schedules: /^\/queues\/(?<queue>[^/%]+)\/schedules$/,
  schedule: /^\/queues\/(?<queue>[^/%]+)\/schedules\/(?<name>[^/%]+)$/,
};

/** Return {view, path, query, and queue, id or name}; `view` is undefined where there is none. */
export function routeOf(path, search = "") {
  const view = Object.keys(VIEWS).find((name) => VIEWS[name].test(path));
  return { view, path, query: Object.fromEntries(new URLSearchParams(search)), ...VIEWS[view]?.exec(path).groups };
}

/** The path of a queue, and of what is below it: queuePath("emails", "jobs", id). */
export const queuePath = (...parts) => ["/queues", ...parts.map(encodeURIComponent)].join("/");

export function navigate(to, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  dispatchEvent(new Event("popstate"));
}

/** Put filters into the address, in place of what they were; empty ones are left out. */
export function setQuery(changes) {
  const query = { ...Object.fromEntries(new URLSearchParams(location.search)), ...changes };
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  navigate(location.pathname + (text && `?${text}`), { replace: true });
}

const here = () => routeOf(location.pathname, location.search);

export function useRoute() {
  const [route, setRoute] = useState(here);
  useEffect(() => {
    addEventListener("popstate", () => setRoute(here()));
    addEventListener("click", follow);
  }, []);
  return route;
}

function follow(event) {
  const link = event.target.closest("a[href^='/']");
  const elsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  if (!link || elsewhere) return;
  event.preventDefault();
  navigate(link.getAttribute("href"));
  scrollTo(0, 0);
}
