// Runs of a schedule for a time that has passed.

import { html, useState } from "./vendor/preact-htm.js";
import { post } from "./api.js";
import { Confirm } from "./confirm.js";
import { plural } from "./format.js";
import { JobLink } from "./job_link.js";
import { useKey } from "./job_form.js";
import { Button, Failure, Field, Instant } from "./parts.js";
import { ruleFields, schedulePath } from "./schedule_form.js";
import { instant } from "./when.js";

const MOST = 500;
const PAGE = 100;

export function Backfill({ queue, schedule, onClose }) {
  const [span, setSpan] = useState({ from: "", to: "" });
  const [seen, setSeen] = useState({});
  const keyFor = useKey();
  const set = (name) => ({ target }) => { setSpan({ ...span, [name]: target.value }); setSeen({}); };
  const asked = () => ({ from: instant(span.from, "from"), to: instant(span.to, "to") });
  const count = async () => {
    setSeen({ busy: true });
    setSeen(await preview(schedule, asked).then((runs) => ({ runs }), (error) => ({ error })));
  };
  const act = async () => {
    const body = asked();
    const { runs } = await post(schedulePath(queue, schedule.schedule, "backfill"), body, keyFor(body));
    return html`${plural(runs.length, "job")} made, due now. ${runs.slice(0, 3).map(({ id }) => html`<${JobLink} key=${id} id=${id} /> `)}`;
  };
  const { runs, error, busy } = seen;
  return html`<${Confirm} title=${`Backfill ${schedule.schedule}?`} verb=${`Make ${plural(runs?.length ?? 0, "job")}`} act=${act}
    onClose=${onClose} ready=${runs?.length > 0 && runs.length <= MOST}>
    <p>Makes a job, due now, for each time that the rule names in a span that has passed. Those that it made then are not looked at.</p>
    <div class="filters">${[["from", "From"], ["to", "To just before"]].map(([name, label]) => html`<${Field} key=${name} label=${label}>
      <input type="datetime-local" step="1" value=${span[name]} onInput=${set(name)} required /><//>`)}
      <${Button} onClick=${count} busy=${busy}>Count them<//></div>
    <${Failure} error=${error} />
    ${runs && html`<p role="status"><strong>${runs.length > MOST ? `Over ${MOST}` : plural(runs.length, "run")}</strong>${
      runs.length > MOST ? `: ${MOST} at a time are allowed.` : ""}${runs.length > 0 && html`, the first at
      <${Instant} at=${runs[0].nominal} />, the last at <${Instant} at=${runs.at(-1).nominal} />`}</p>`}
  <//>`;
}

/** The runs of a rule in a span, a page at a time, as far as it takes to tell whether they are too many. */
async function preview(schedule, asked) {
  const { from, to } = asked();
  const runs = [];
  // A preview begins behind its instant, a backfill at it.
  let after = new Date(Date.parse(from) - 1).toISOString();
  while (runs.length <= MOST) {
    const { next } = await post("/api/schedules/preview", { ...ruleFields(schedule), from: after, limit: PAGE });
    const some = next.filter(({ nominal }) => nominal < to);
    runs.push(...some);
    if (some.length < PAGE) break;
    after = some.at(-1).nominal;
  }
  return runs;
}
