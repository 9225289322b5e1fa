// Calls of the console's server. Each failure is thrown as Failed: {title, detail, status}, for a view to show.

const KEPT = "dueline-console-token";
const PATIENCE_MS = 30000;
const tabs = new BroadcastChannel("dueline-console");

export class Failed extends Error {
  constructor({ title, detail, status = 0, ...more }) {
    super(detail);
    Object.assign(this, { title, detail, status }, more);
  }
}

const kept = () => sessionStorage.getItem(KEPT);

export function keepToken(text) {
  const token = text.trim().replace(/^.*#?token=/, "");
  sessionStorage.setItem(KEPT, token);
  return token;
}

/** Take the token from the address bar, or from another tab of this console; null where none has it. */
export async function findToken() {
  if (location.hash.startsWith("#token=")) {
    keepToken(location.hash);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const token = kept() ?? (await askOtherTabs());
  tabs.onmessage = ({ data }) => data === "token?" && kept() && tabs.postMessage({ token: kept() });
  return token;
}

function askOtherTabs() {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), 300);
    tabs.onmessage = ({ data }) => {
      if (!data.token) return;
      clearTimeout(timer);
      resolve(keepToken(data.token));
    };
    tabs.postMessage("token?");
  });
}

/** Return {status, body, etag}. */
export async function send(method, path, body, headers = {}) {
  const answer = await ask(method, path, body, headers);
  const text = await answer.text();
  const read = parsed(text);
  if (answer.status === 401) dispatchEvent(new Event("token-refused"));
  if (!answer.ok) throw refusal(answer, read, text);
  return { status: answer.status, body: read, etag: answer.headers.get("etag") };
}

const sender = (method) => async (path, body, headers) => (await send(method, path, body, headers)).body;

export const get = (path) => sender("GET")(path);
export const post = (path, body = {}, headers) => sender("POST")(path, body, headers);
export const put = sender("PUT");
export const patch = sender("PATCH");
export const remove = (path, headers) => sender("DELETE")(path, undefined, headers);

async function ask(method, path, body, headers) {
  const said = body === undefined ? {} : { body: JSON.stringify(body) };
  const all = { "content-type": "application/json", "x-dueline-console": kept() ?? "", ...headers };
  try {
    return await fetch(path, { method, headers: all, signal: AbortSignal.timeout(PATIENCE_MS), ...said });
  } catch (error) {
    throw new Failed(error.name === "TimeoutError" ? SLOW : GONE);
  }
}

const SLOW = { title: "No answer", detail: `The console waited ${PATIENCE_MS / 1000} seconds. It tries again by itself.` };
const GONE = {
  title: "The console does not answer",
  detail: "Is dueline console still running? Start it again, and open the address that it prints.",
};

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function refusal(answer, read, text) {
  const status = answer.status;
  const title = read?.title ?? answer.statusText;
  return new Failed({ ...read, status, title, detail: read?.detail ?? read?.message ?? text.slice(0, 300) });
}
