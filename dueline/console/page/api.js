// Calls of the console's server, once or again and again. Each failure is thrown as Failed: {title, detail, status}.

import { useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { parseJson } from "./json.js";

const KEPT = "dueline-console-token";
const PATIENCE_MS = 30000;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const GONE = {
  title: "The console does not answer",
  detail: "Is dueline console still running? Start it again, and open the address that it prints.",
};

export class Failed extends Error {
  constructor(problem) {
    super(problem.detail);
    Object.assign(this, { status: 0, ...problem });
  }
}

export const keptToken = () => sessionStorage.getItem(KEPT);

export const keepToken = (text) => sessionStorage.setItem(KEPT, text.trim().replace(/^.*#?token=/, ""));

/** Take the token out of the address bar. */
export function takeToken() {
  if (!location.hash.startsWith("#token=")) return;
  keepToken(location.hash);
  history.replaceState(null, "", location.pathname + location.search);
}

/** A function of (path, body, headers) for each method: it asks so, and returns what the answer's JSON holds. */
export const [get, post, put, patch, remove] = METHODS.map((method) => async (path, body, headers) => {
  const answer = await ask(method, path, body, headers);
  const isJson = answer.headers.get("content-type")?.includes("json");
  const read = isJson ? parseJson(await answer.text()) : null;
  if (answer.status === 401) dispatchEvent(new Event("token-refused"));
  if (!answer.ok) throw refusal(answer, read);
  return read;
});

async function ask(method, path, body, more) {
  const headers = { "content-type": "application/json", "x-dueline-console": keptToken() ?? "", ...more };
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    const then = method === "GET" ? "Views ask again by themselves." : "It may have been done: look, then try again.";
    const slow = { title: "No answer", detail: `The console waited 30 seconds. ${then}` };
    throw new Failed(error.name === "TimeoutError" ? slow : GONE);
  }
}

function refusal({ status, statusText }, read) {
  return new Failed({ title: statusText, detail: read?.message ?? "", ...read, status });
}

/**
 * Load at once and every so many seconds (0: only once) while the tab is visible, never twice at a time.
 *
 * `key` names all that `load` depends on: another key begins anew. Returns {data, error, at, age, again}: `data` stays
 * when a later load fails, `at` (ms) and `age` (seconds) tell when it came, `again()` loads now.
 */
export function usePolled(load, seconds, key = "") {
  const [polled, setPolled] = useState({ key });
  const poll = useRef(null);
  useEffect(() => {
    const tell = (news) => setPolled((old) => ({ ...(old.key === key ? old : {}), key, ...news }));
    poll.current = polling(load, seconds, tell);
    return poll.current.stop;
  }, [key, seconds]);
  const { data, error, at } = polled.key === key ? polled : {};
  return { data, error, at, age: at && (Date.now() - at) / 1000, again: () => poll.current.now() };
}

export function polling(load, seconds, tell) {
  let timer;
  let busy = false;
  let wanted = false;
  let stopped = false;
  async function now() {
    wanted = busy;
    if (busy || stopped) return;
    clearTimeout(timer);
    busy = true;
    const news = await load().then((data) => ({ data, error: undefined, at: Date.now() }), (error) => ({ error }));
    busy = false;
    if (stopped) return;
    tell(news);
    if (wanted) now();
    else if (seconds && !document.hidden) timer = setTimeout(now, seconds * 1000);
  }
  const seen = () => (document.hidden ? clearTimeout(timer) : seconds && now());
  const stop = () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
  document.addEventListener("visibilitychange", seen);
  now();
  return { now, stop };
}

const ticking = new Set();
setInterval(() => document.hidden || ticking.forEach((tick) => tick(Date.now())), 1000);

/** The time in milliseconds, anew every second. */
export function useNow() {
  const [, setNow] = useState(0);
  useEffect(() => {
    ticking.add(setNow);
    return () => ticking.delete(setNow);
  }, []);
  return Date.now();
}
