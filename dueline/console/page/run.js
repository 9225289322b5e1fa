// Runs of the console's server over dead letters, which go on in the background and are asked after.

import { html, useState } from "./vendor/preact-htm.js";
import { Failed, get, post } from "./api.js";
import { Failure, Progress } from "./parts.js";

const POLL_MS = 500;

/** Begin a run, or take up the one that is under way. Return its result, or throw Failed; `tell` gets how far it is. */
export async function run(queue, action, body, tell) {
  tell(html`<${Progress} what="dead letter" />`);
  const begun = await post(`/console/queues/${queue}/dead-letters/${action}`, body);
  for (;;) {
    const { state, result, error, done, of } = await get(`/console/runs/${begun.run}`);
    if (state === "done") return result;
    if (state === "failed") throw new Failed({ title: "The run failed", ...error });
    tell(html`<${Progress} done=${done} of=${of} what="dead letter" />`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Runs that are shown: {result, at, shown, busy, start(body), clear()}; `shown` is how far one is, or why it failed. */
export function useRun(queue, action) {
  const [state, setState] = useState({});
  const start = async (body) => {
    try {
      const result = await run(queue, action, body, (shown) => setState((old) => ({ ...old, shown, busy: true })));
      setState({ result, at: Date.now() });
    } catch (error) {
      setState((old) => ({ ...old, busy: false, shown: html`<${Failure} error=${error} />` }));
    }
  };
  return { ...state, start, clear: () => setState({}) };
}
