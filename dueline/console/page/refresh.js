// What is asked again and again, and the seconds that pass meanwhile.

import { useEffect, useRef, useState } from "./vendor/preact-htm.js";

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
