// Runs of a schedule for a time that has passed.

import { html, useState } from "./vendor/preact-htm.js";
import { post } from "./api.js";
import { Confirm } from "./confirm.js";
import { plural } from "./format.js";
import { useKey } from "./job_form.js";
import { Button, Failure, Input, Instant, JobLink } from "./parts.js";
import { ruleFields, schedulePath } from "./schedule_form.js";
import { instant } from "./when.js";

const MOST = 500;
const PAGE = 100;

export function Backfill({ queue, schedule, onClose }) {
  const [span, setSpan] = useState({ from: "", to: "" });
  const [{ runs, error, busy }, setSeen] = useState({});
  const keyFor = useKey();
  const form = [span, (changed) => {
    setSpan(changed);
    setSeen({});
  }];
  const asked = () => ({ from: instant(span.from, "from"), to: instant(span.to, "to") });
  const count = () => {
    setSeen({ busy: true });
    preview(schedule, asked).then((runs) => setSeen({ runs }), (error) => setSeen({ error }));
  };
  const act = async () => {
    const body = asked();
    const made = await post(schedulePath(queue, schedule.schedule, "backfill"), body, keyFor(body));
    return html`${plural(made.runs.length, "job")} made, due now.
      ${made.runs.slice(0, 3).map(({ id }) => html` <${JobLink} key=${id} id=${id} />`)}`;
  };
  const tooMany = runs?.length > MOST;
  return html`<${Confirm} title=${`Backfill ${schedule.schedule}?`} verb=${`Make ${plural(runs?.length ?? 0, "job")}`}
    act=${act} onClose=${onClose} ready=${runs?.length > 0 && !tooMany}>
    <p>Makes a job, due now, for each time that the rule names in a span that has passed. Those that it made then are not
      looked at.</p>
    <div class="filters">
      <${Input} form=${form} name="from" label="From" type="datetime-local" step="1" required />
      <${Input} form=${form} name="to" label="To just before" type="datetime-local" step="1" required />
    </div>
    <p><${Button} onClick=${count} busy=${busy}>Count them<//></p>
    <${Failure} error=${error} />
    ${runs && html`<p role="status"><strong>${tooMany ? `Over ${MOST}` : plural(runs.length, "run")}</strong>${
      tooMany && `: ${MOST} at a time are allowed.`}${runs.length > 0 && html`, the first at
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
