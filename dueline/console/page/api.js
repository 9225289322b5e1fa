// Calls of the console's server, once or repeatedly, and their JSON. A failure is thrown as an ApiError.

import { useEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js";

const TOKEN_KEY = "dueline-console-token";
const TIMEOUT_MS = 30000;
const AT_ONCE = 4;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const NO_CONSOLE = {
  title: "The console does not answer",
  detail: "Is dueline console still running? Start it again, and open the address that it prints.",
};

export class ApiError extends Error {
  constructor(problem) {
    super(problem.detail);
    Object.assign(this, { status: 0, ...problem });
  }
}

export const storedToken = () => sessionStorage.getItem(TOKEN_KEY);

/** Move the token from the address bar into the tab's storage. */
export function takeTokenFromUrl() {
  if (!location.hash.startsWith("#token=")) return;
  sessionStorage.setItem(TOKEN_KEY, location.hash.slice("#token=".length));
  history.replaceState(null, "", location.pathname + location.search);
}

/** A function of (path, body, headers) for each method, which returns the JSON of the response. */
export const [get, post, put, patch, remove] = METHODS.map((method) => async (path, body, headers) => {
  const response = await send(method, path, body, headers);
  const isJson = response.headers.get("content-type")?.includes("json");
  const content = isJson ? parseResponse(await response.text()) : null;
  if (response.status === 401) dispatchEvent(new Event("token-refused"));
  if (!response.ok) throw toError(response, content);
  return content;
});

async function send(method, path, body, more) {
  const headers = { "content-type": "application/json", "x-dueline-console": storedToken() ?? "", ...more };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    return await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    const advice = method === "GET" ? "Views load again by themselves." : "It may have been done: check first.";
    const timeout = { title: "No answer", detail: `The console waited 30 seconds. ${advice}` };
    throw new ApiError(error.name === "TimeoutError" ? timeout : NO_CONSOLE);
  }
}

const toError = ({ status, statusText }, content) =>
  new ApiError({ title: statusText, detail: content?.message ?? "", ...content, status });

/**
 * Read something of each queue with `read(queue)`: {queues}, each with the answer, or with its `error`.
 *
 * What fails, and is not forbidden, is read once more. `report` gets the same at once and after each answer: a
 * queue that has not answered yet has `reading`. Few are read at once: AWS starts a process of the API's function for
 * each, and the first one that runs answers the most.
 */
export async function readEach(read, report) {
  const all = (await get("/api/queues")).queues;
  let queues = all.map((queue) => ({ ...queue, reading: true }));
  const next = all.entries();
  const readOn = async () => {
    for (const [index, queue] of next) {
      const again = (error) => (error.status === 403 ? Promise.reject(error) : read(queue.queue));
      const answer = await read(queue.queue).catch(again).catch((error) => ({ error }));
      queues = queues.with(index, { ...queue, ...answer });
      report({ queues });
    }
  };
  report({ queues });
  await Promise.all(Array.from({ length: AT_ONCE }, readOn));
  return { queues };
}

/**
 * Load at once and every so many seconds (0: only once) while the tab is visible, never twice at a time.
 *
 * `key` names all that `load` depends on: another key drops the data. Nothing loads while `load` is null. The first
 * load(report) may report(data) that is not complete. Returns {data, error, at, age, refresh}: `data` stays when a
 * later load fails, `at` (ms) and `age` (seconds) say when it was complete, `refresh()` loads now.
 */
export function usePolled(load, seconds, key = "") {
  const [held, setHeld] = useState({ key });
  const latest = useRef();
  latest.current = key;
  const poll = useRef(null);
  useEffect(() => {
    if (!load) return undefined;
    const update = (changes) => latest.current === key && setHeld((old) => ({ ...(old.key === key && old), ...changes, key }));
    poll.current = polling(load, seconds, update);
    return poll.current.stop;
  }, [key, seconds]);
  const { data, error, at } = held.key === key ? held : {};
  return { data, error, at, age: at && (Date.now() - at) / 1000, refresh: () => poll.current?.now() };
}

/**
 * Hold what is loaded on a click: {data, at, error, progress, busy, start}.
 *
 * `start(load)` loads it: load(report) returns the data, and report(progress) shows how far it is. `data` and `at` (ms)
 * stay while the same is loaded again, also if that fails.
 */
export function useResult() {
  const [result, setResult] = useState({});
  const update = (changes) => setResult((old) => ({ ...old, ...changes }));
  const end = (changes) => update({ error: undefined, progress: undefined, busy: false, ...changes });
  const start = (load) => {
    update({ busy: true });
    return load((progress) => update({ progress }))
      .then((data) => end({ data, at: Date.now() }), (error) => end({ error }));
  };
  return { ...result, start };
}

export function polling(load, seconds, update) {
  let timer;
  let busy = false;
  let wanted = false;
  let stopped = false;
  let isComplete = false;
  const report = (data) => stopped || isComplete || update({ data });
  async function now() {
    wanted = busy;
    if (busy || stopped) return;
    clearTimeout(timer);
    busy = true;
    const changes = await load(report).then((data) => ({ data, error: undefined, at: Date.now() }), (error) => ({ error }));
    busy = false;
    isComplete ||= "data" in changes;
    if (stopped) return;
    update(changes);
    if (wanted) now();
    else if (seconds && !document.hidden) timer = setTimeout(now, seconds * 1000);
  }
  const onVisibility = () => (document.hidden ? clearTimeout(timer) : seconds && now());
  const stop = () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisibility);
  };
  document.addEventListener("visibilitychange", onVisibility);
  now();
  return { now, stop };
}

const clocks = new Set();
setInterval(() => document.hidden || clocks.forEach((setNow) => setNow(Date.now())), 1000);

/** The time in milliseconds, updated every second. */
export function useNow() {
  const [, setNow] = useState(0);
  useEffect(() => {
    clocks.add(setNow);
    return () => clocks.delete(setNow);
  }, []);
  return Date.now();
}

/** Parse JSON. A number that JavaScript would write otherwise, such as 1.0, stays its text. Throws a SyntaxError. */
export const parseExact = (text) => JSON.parse(text, (_, value, { source }) =>
  typeof value === "number" && JSON.stringify(value) !== source ? JSON.rawJSON(source) : value);

/** Parse a response of the API: its payloads are exact, all other numbers are plain. Throws a SyntaxError. */
export const parseResponse = (text) => plainOutsidePayloads(parseExact(text));

function plainOutsidePayloads(value) {
  if (JSON.isRawJSON(value)) return Number(value.rawJSON);
  if (typeof value !== "object" || value === null) return value;
  for (const name of Object.keys(value)) if (name !== "payload") value[name] = plainOutsidePayloads(value[name]);
  return value;
}

/** A header that makes retries from one dialog idempotent. */
export const useKey = () => useMemo(() => ({ "idempotency-key": `console-${crypto.randomUUID()}` }), []);
