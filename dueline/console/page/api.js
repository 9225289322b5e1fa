// Calls of the console's server. Each failure is thrown as Failed: {title, detail, status}, for a view to show.

const KEPT = "dueline-console-token";
const PATIENCE_MS = 30000;
const SLOW = { title: "No answer", detail: "The console waited 30 seconds. It tries again by itself." };
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

/** Return a function of (path, body, headers) that asks so and returns what the answer's JSON holds. */
const caller = (method) => async (path, body, headers) => {
  const answer = await ask(method, path, body, headers);
  const text = await answer.text();
  if (answer.status === 401) dispatchEvent(new Event("token-refused"));
  if (!answer.ok) throw refusal(answer, text);
  return parsed(text);
};

export const get = caller("GET");
export const post = caller("POST");
export const put = caller("PUT");
export const patch = caller("PATCH");
export const remove = caller("DELETE");

async function ask(method, path, body, more) {
  const headers = { "content-type": "application/json", "x-dueline-console": keptToken() ?? "", ...more };
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    throw new Failed(error.name === "TimeoutError" ? SLOW : GONE);
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function refusal({ status, statusText }, text) {
  const read = parsed(text);
  return new Failed({ title: statusText, detail: read?.message ?? text.slice(0, 300), ...read, status });
}
