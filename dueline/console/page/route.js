// Which view an address means, and going from one to another without loading the page anew.

import { useEffect, useState } from "./vendor/preact-htm.js";

const VIEWS = [
  ["queues", "/"],
  ["queue", "/queues/:queue"],
  ["jobs", "/queues/:queue/jobs"],
  ["job", "/queues/:queue/jobs/:id"],
  ["deadLetters", "/queues/:queue/dead-letters"],
  ["schedules", "/queues/:queue/schedules"],
  ["schedule", "/queues/:queue/schedules/:name"],
];

/** Return {view, path, query, and queue, id or name}; `view` is null where there is none. */
export function routeOf(path, search = "") {
  const parts = path.split("/");
  const matches = (pattern) => {
    const wanted = pattern.split("/");
    return wanted.length === parts.length && wanted.every((part, i) => (part[0] === ":" ? parts[i] : part === parts[i]));
  };
  const [view, pattern] = VIEWS.find(([, pattern]) => matches(pattern)) ?? [null, ""];
  const named = pattern.split("/").flatMap((part, i) => (part[0] === ":" ? [[part.slice(1), decoded(parts[i])]] : []));
  return { view, path, query: Object.fromEntries(new URLSearchParams(search)), ...Object.fromEntries(named) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The path of a queue, and of what is below it: queuePath("emails", "jobs", id). */
export const queuePath = (...parts) => ["/queues", ...parts.map(encodeURIComponent)].join("/");

export function navigate(to, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  dispatchEvent(new Event("navigated"));
}

/** Put filters into the address, in place of what they were; empty ones are left out. */
export function setQuery(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value == null) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(location.pathname + (text && `?${text}`), { replace: true });
}

const here = () => routeOf(location.pathname, location.search);

export function useRoute() {
  const [route, setRoute] = useState(here);
  useEffect(() => {
    const moved = () => setRoute(here());
    addEventListener("popstate", moved);
    addEventListener("navigated", moved);
    document.addEventListener("click", follow);
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener("navigated", moved);
      document.removeEventListener("click", follow);
    };
  }, []);
  return route;
}

function follow(event) {
  const link = event.target.closest?.("a[href^='/']");
  const elsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  if (!link || link.target || elsewhere || event.defaultPrevented) return;
  event.preventDefault();
  navigate(link.getAttribute("href"));
  scrollTo(0, 0);
}
