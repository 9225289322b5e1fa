import { html } from "./vendor/preact-htm.js";
import { queuePath } from "./route.js";

/** A job by the start of its id's last part, which tells it apart; the whole id is in the title. */
export function JobLink({ id }) {
  const [queue, , , , uid] = id.split(".");
  return html`<a class="id" href=${queuePath(queue, "jobs", id)} title=${id}>${uid?.slice(0, 8) ?? id}</a>`;
}
