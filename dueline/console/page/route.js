// The view and the filters that an address names.

import { useEffect, useState } from "./vendor/preact-htm.js";

// No name of a queue or a schedule and no id needs an escape.
const VIEWS = {
  Queues: /^\/$/,
  AllSchedules: /^\/schedules$/,
  AllDeadLetters: /^\/dead-letters$/,
  Search: /^\/search$/,
  Queue: /^\/queues\/(?<queue>[^/%]+)$/,
  Jobs: /^\/queues\/(?<queue>[^/%]+)\/jobs$/,
  Job: /^\/queues\/(?<queue>[^/%]+)\/jobs\/(?<id>[^/%]+)$/,
  DeadLetters: /^\/queues\/(?<queue>[^/%]+)\/dead-letters$/,
  Schedules: /^\/queues\/(?<queue>[^/%]+)\/schedules$/,
  Schedule: /^\/queues\/(?<queue>[^/%]+)\/schedules\/(?<name>[^/%]+)$/,
};

/** Return {view, path, query, and queue, id or name}; `view` is undefined where there is none. */
function routeOf(path, search = "") {
  const view = Object.keys(VIEWS).find((name) => VIEWS[name].test(path));
  return { view, path, query: Object.fromEntries(new URLSearchParams(search)), ...VIEWS[view]?.exec(path).groups };
}

/** The path of a queue, and of what is below it: queuePath("emails", "jobs", id). */
export const queuePath = (...parts) => ["/queues", ...parts.map(encodeURIComponent)].join("/");

/** Change filters in the address; empty ones are left out. */
export function setQuery(changes) {
  const query = { ...Object.fromEntries(new URLSearchParams(location.search)), ...changes };
  const kept = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}?${kept}`);
  dispatchEvent(new Event("filtered"));
}

const here = () => routeOf(location.pathname, location.search);

export function useRoute() {
  const [route, setRoute] = useState(here);
  useEffect(() => addEventListener("filtered", () => setRoute(here())), []);
  return route;
}
