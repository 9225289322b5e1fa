// Runs of the console's server over dead letters, which go on in the background and are asked after.

import { Failed, get, post } from "./api.js";

const POLL_MS = 500;

/** Begin a run, or take up the one that is under way; `tell` gets it as it goes on. Return its result, or throw Failed. */
export async function run(queue, action, body, tell) {
  return followed(await begun(queue, action, body), tell);
}

async function begun(queue, action, body) {
  const { run } = await post(`/console/queues/${queue}/dead-letters/${action}`, body);
  return run;
}

async function followed(id, tell) {
  for (;;) {
    const now = await get(`/console/runs/${id}`);
    if (now.state === "done") return now.result;
    if (now.state === "failed") throw new Failed({ title: "The run failed", ...now.error });
    tell(now);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
