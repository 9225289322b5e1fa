// The fields by which jobs are picked. What they hold is in the address, so that it can be sent to a colleague.

import { html } from "./vendor/preact-htm.js";
import { Field } from "./parts.js";
import { setQuery } from "./route.js";
import { fieldText } from "./when.js";

/** Fields for `from`, `to`, `tenant` and those of `more`: [[name, label, placeholder]]. */
export function Filters({ query, more = [], off = false }) {
  const typed = [["tenant", "Tenant", "all"], ...more];
  return html`<div class="filters" role="group" aria-label="Filters">
    <${Moment} name="from" label="Due from" query=${query} off=${off} />
    <${Moment} name="to" label="Due before" query=${query} off=${off} />
    ${typed.map(([name, label, placeholder]) => html`<${Field} key=${name} label=${label}>
      <input type="search" value=${query[name] ?? ""} placeholder=${placeholder} disabled=${off} spellcheck="false"
        onInput=${(event) => setQuery({ [name]: event.target.value })} /><//>`)}
  </div>`;
}

function Moment({ name, label, query, off }) {
  const shown = query[name] ? fieldText(query[name]) : "";
  const set = ({ target }) => setQuery({ [name]: target.value && new Date(target.value).toISOString() });
  return html`<${Field} label=${label}>
    <input type="datetime-local" step="1" value=${shown} disabled=${off} onChange=${set} /><//>`;
}
