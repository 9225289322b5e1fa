// The pieces that all views are made of.

import { createContext, html, useContext, useMemo, useState } from "./vendor/preact-htm.js";
import { local, plural, relative, span, utc } from "./format.js";
import { useNow } from "./refresh.js";

/** What /console/about tells, such as `read_only`. */
export const About = createContext({});

let count = 0;
export const useId = () => useMemo(() => `n${++count}`, []);

/** An instant in the reader's own time, with UTC in the title; `near` says how far off it is. */
export function Instant({ at, near = false }) {
  const now = useNow();
  if (!at) return html`<span class="none">none</span>`;
  const iso = new Date(at).toISOString();
  return html`<time datetime=${iso} title=${`${local(at, 0)} local, ${utc(at)}`}>
    ${near ? relative(at, now) : local(at, now)}</time>`;
}

/** How old something is: "12 s ago". `at` in milliseconds. */
export function Age({ at }) {
  return html`<span class="age">${relative(at, Math.max(at, useNow()))}</span>`;
}

/** How old what is shown is, and how often it comes anew; `polled` is what usePolled returns. */
export function Freshness({ polled, seconds }) {
  const { at, error } = polled;
  return html`<p class="fresh">
    ${at && html`<span class=${error ? "dot bad" : "dot"} aria-hidden="true" />As of <${Age} at=${at} />`}
    ${at && seconds && html`<span class="wide">, every ${span(seconds)}</span>`}
    <${Button} kind="quiet" onClick=${polled.again} label="Refresh now">Refresh<//>
  </p>`;
}

/** What failed and why: "Could not load {what}: …"; `at` is when what is still shown was read. */
export function Failure({ error, at, what }) {
  if (!error) return null;
  return html`<div class="notice bad" role="alert">
    <strong>${what && `Could not load ${what}: `}${error.title ?? "This went wrong"}</strong>${error.status ? html` <span class="muted">${error.status}</span>` : ""}
    <p>${error.detail ?? error.message}</p>
    ${at && html`<p>What is shown is as of <${Age} at=${at} />.</p>`}
  </div>`;
}

/** A view's state before its first data: that it loads, or why it cannot. */
export function Loading({ error, what = "figures" }) {
  return error ? html`<${Failure} error=${error} what=${what} />` : html`<p class="empty" role="status">Loading ${what} …</p>`;
}

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** A state, in a word and a colour. `tone`: "bad", "warn", "ok" or "idle". */
export const State = ({ word, tone = "idle", title }) => html`<span class=${`state ${tone}`} title=${title}>${word}</span>`;

/**
 * `kind`: "plain", "primary", "danger" or "quiet". `writes`: it changes something, so that it is off where the console
 * is read-only. `why` switches it off and says why. `label` is its name where its text does not tell enough.
 */
export function Button({ children, onClick, kind = "plain", type = "button", writes, why, label, busy, ...more }) {
  const { read_only } = useContext(About);
  const reason = writes && read_only ? "This console is read-only: it was started with --read-only" : why || undefined;
  const act = (event) => (reason || busy ? event.preventDefault() : onClick?.(event));
  return html`<button class=${`button ${kind}`} type=${type} onClick=${act} title=${reason} aria-label=${label}
    aria-disabled=${Boolean(reason || busy)} aria-busy=${Boolean(busy)} ...${more}>${children}</button>`;
}

/** A link that looks as a button does. */
export const LinkButton = ({ href, children, ...more }) => html`<a class="button plain" href=${href} ...${more}>${children}</a>`;

/**
 * `columns`: [{name, label, cell: (row) => …, end: numbers, head: names the row, title}]. `keyOf(row)` is unique.
 * `stack`: rows become cards on a telephone, in place of a box to scroll.
 */
export function Table({ caption, columns, rows, keyOf, stack = false, classOf = () => "" }) {
  const box = stack ? { class: "stack" } : { class: "scroll", tabindex: 0, role: "region", "aria-label": caption };
  return html`<div ...${box}><table>
    <caption class="hidden">${caption}</caption>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.end ? "end" : ""} title=${column.title}
      key=${column.name}>${column.label}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<${Row} key=${keyOf(row)} row=${row} columns=${columns} class=${classOf(row)} />`)}</tbody>
  </table></div>`;
}

function Row({ row, columns, class: named }) {
  return html`<tr class=${named}>${columns.map(({ name, label, cell, end, head, title }) => {
    const as = { key: name, class: `${name} ${end ? "end" : ""}`, "data-label": label, title };
    return head ? html`<th scope="row" ...${as}>${cell(row)}</th>` : html`<td ...${as}>${cell(row)}</td>`;
  })}</tr>`;
}

/** Names and values: [[name, value, explanation]]. */
export function Facts({ facts }) {
  return html`<dl class="facts">${facts.map(([name, value, why]) => html`<div key=${name} title=${why}>
    <dt>${name}</dt><dd>${value ?? html`<span class="none">none</span>`}</dd></div>`)}</dl>`;
}

/** A figure with its word; `href` makes it a link, `tone` colours it, `note` explains it. */
export function Tile({ label, value, note, tone = "", href }) {
  const inside = html`<span class="label">${label}</span><span class="value">${value}</span>
    ${note && html`<span class="note">${note}</span>`}`;
  return href ? html`<a class=${`tile ${tone}`} href=${href}>${inside}</a>` : html`<div class=${`tile ${tone}`}>${inside}</div>`;
}

/** Text of others, such as a payload: never markup. Values that are no text are shown as JSON. */
export function Text({ value, label = "Payload" }) {
  const shown = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return html`<pre class="text" tabindex="0" aria-label=${label} role="region">${shown}</pre>`;
}

/** `of` null: how many there are is not known. */
export function Progress({ done = 0, of = null, what = "job" }) {
  const text = of == null ? `${plural(done, what)} so far` : `${done} of ${plural(of, what)}`;
  return html`<div class="progress" role="status"><progress max=${of ?? 1} value=${of == null ? undefined : done}
    aria-label="Progress" /><span>${text}</span></div>`;
}

/** A field of a form with its label; `hint` is read out with it. */
export function Field({ label, hint, children }) {
  return html`<label class="field"><span class="label">${label}</span>${children}${hint && html`<small>${hint}</small>`}</label>`;
}

/** Whether a dialog is open, and for what: [what, open(what), close]. */
export function useDialog() {
  const [what, setWhat] = useState(null);
  return [what, setWhat, () => setWhat(null)];
}
