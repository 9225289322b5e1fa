// The pieces that all views are made of.

import { createContext, html, useContext, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { useNow } from "./api.js";
import { clock, inZone, local, plural, relative, span, utc, ZONE } from "./format.js";
import { queuePath } from "./route.js";

/** What /console/about returns, such as `read_only`. */
export const About = createContext({});

/**
 * A view: `title`, what is `beside` it and `above` the rest, and what `children` returns for the data of `polled` (of
 * usePolled), with its age and its error. `what` names the data.
 */
export function View({ title, beside, above, polled, seconds, what, children }) {
  return html`<div class="view">
    <div class="head"><h1>${title}</h1>${beside}<${Freshness} polled=${polled} seconds=${seconds} /></div>
    ${above}
    <${Loaded} polled=${polled} what=${what}>${children}<//>
  </div>`;
}

/** What `children` returns for data that has loaded, with the error of a later load. */
export function Loaded({ polled: { data, error, at }, what, children }) {
  return html`<${Failure} error=${error} at=${at} what=${what} />
    ${data ? children(data) : !error && html`<p class="empty" role="status">Loading ${what} …</p>`}`;
}

function Freshness({ polled: { at, error, refresh }, seconds }) {
  return html`<p class="fresh">
    ${at && html`<span class=${error ? "dot bad" : "dot ok"} aria-hidden="true" />As of <${Instant} at=${at} near />
      ${seconds > 0 && html`<span class="wide">every ${span(seconds)}</span>`}`}
    <${Button} kind="quiet" onClick=${refresh} label="Refresh now">Refresh<//>
  </p>`;
}

/** An error: "Could not load {what}: …"; `at` is when the data that is still shown was loaded. */
export function Failure({ error, at, what }) {
  if (!error) return null;
  return html`<div class=${`notice bad ${at ? "stale" : ""}`} role="alert">
    <strong>${what && `Could not load ${what}: `}${error.title ?? "This went wrong"}</strong>
    <span class="muted"> ${error.status || ""}</span>
    <p>${error.detail ?? error.message}</p>
    ${at && html`<p>What is shown is as of <${Instant} at=${at} near />.</p>`}
  </div>`;
}

/**
 * An instant in the reader's own time, with its zone and UTC in the title. `near`: how far off it is; `short`: hours and
 * minutes. With `zone`, that of a schedule, the time there is beside it.
 */
export function Instant({ at, near = false, short = false, zone = ZONE }) {
  const now = useNow();
  if (!at) return html`<span class="none">none</span>`;
  const text = near ? relative(at, now) : short ? clock(at) : local(at, now);
  return html`<time datetime=${new Date(at).toISOString()} title=${`${inZone(at)}, ${utc(at)}`}>${text}</time>${
    zone !== ZONE && html` <small>${inZone(at, zone)}</small>`}`;
}

/** How many of the queues have not answered yet. */
export function Reading({ queues }) {
  const left = queues.filter(({ reading }) => reading).length;
  return left > 0 && html`<p class="muted" role="status">Reading ${left} of ${plural(queues.length, "queue")} …</p>`;
}

/** Which of the queues did not answer, and why, or have not yet. */
export function NoAnswer({ queues }) {
  const failed = queues.filter(({ error }) => error);
  return html`<${Reading} queues=${queues} />${failed.length > 0 && html`<div class="notice warn" role="status">
    <strong>${failed.length} of ${plural(queues.length, "queue")} did not answer:</strong>
    <ul>${failed.map(({ queue, error }) =>
      html`<li key=${queue}><a href=${queuePath(queue)}>${queue}</a>: ${error.detail}</li>`)}</ul></div>`}`;
}

/** A link to a job, with the start of the last part of its id; the whole id is in the title. */
export function JobLink({ id }) {
  const [queue, , , , uid] = id.split(".");
  return html`<a href=${queuePath(queue, "jobs", id)} title=${id}>${uid?.slice(0, 8) ?? id}</a>`;
}

/** A state, in a word and a colour. `tone`: "bad", "warn", "ok" or "idle". */
export const State = ({ word, tone = "idle", title }) =>
  html`<span class=${`state ${tone}`} title=${title}>${word}</span>`;

/**
 * `kind`: "plain", "primary", "danger" or "quiet". `writes`: it changes something, so that it is off where the console
 * is read-only. `why` switches it off and says why. `label` is its name where its text is not enough.
 */
export function Button({ children, onClick, kind = "plain", type = "button", writes, why, label, busy }) {
  const { read_only } = useContext(About);
  const reason = writes && read_only ? "This console is read-only: it was started with --read-only" : why || undefined;
  const act = (event) => (reason || busy ? event.preventDefault() : onClick?.(event));
  return html`<button class=${`button ${kind}`} type=${type} onClick=${act} title=${reason} aria-label=${label}
    aria-disabled=${Boolean(reason || busy)} aria-busy=${Boolean(busy)}>${children}</button>`;
}

/**
 * `columns`: [{name, label, cell: (row) => …, end: numbers, head: names the row, title}]. Without `cell`, it is what the
 * row has of that name. `keyOf(row)` is unique.
 * `stack`: rows become cards on a telephone, in place of a box to scroll. `empty` is shown where there are no rows.
 */
export function Table({ caption, columns, rows, keyOf, empty, stack = false, classOf = () => "" }) {
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  const box = stack ? { class: "stack" } : { class: "scroll", tabindex: 0, role: "region", "aria-label": caption };
  return html`<div ...${box}><table>
    <caption class="hidden">${caption}</caption>
    <thead><tr>${columns.map(({ name, label, end, title }) =>
      html`<th key=${name} scope="col" class=${`${name} ${end ? "end" : ""}`} title=${title}>${label}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${keyOf(row)} class=${classOf(row)}>
      ${columns.map((column) => html`<${Cell} key=${column.name} row=${row} ...${column} />`)}</tr>`)}</tbody>
  </table></div>`;
}

function Cell({ row, name, label, cell = () => row[name], end, head, title }) {
  const as = { class: `${name} ${end ? "end" : ""}`, "data-label": label, title };
  return head ? html`<th scope="row" ...${as}>${cell(row)}</th>` : html`<td ...${as}>${cell(row)}</td>`;
}

/** Names and values: [[name, value, explanation]]; those that are undefined are left out. */
export function Facts({ facts }) {
  const shown = facts.filter(([, value]) => value !== undefined);
  return html`<dl class="facts">${shown.map(([name, value, why]) => html`<div key=${name} title=${why}>
    <dt>${name}</dt><dd>${value ?? html`<span class="none">none</span>`}</dd></div>`)}</dl>`;
}

/** Figures with their words: [{label, value, note, tone, href}]; `href` makes one a link, `tone` colours it. */
export const Tiles = ({ tiles }) => html`<div class="tiles">${tiles.map(({ label, value, note, tone, href }) =>
  html`<${href ? "a" : "div"} key=${label} class=${`tile ${tone || ""}`} href=${href}>
    <span class="label">${label}</span><span class="value">${value}</span><small>${note}</small><//>`)}</div>`;

/** Foreign text, such as a payload: never markup. Other values are shown as JSON. */
export function Text({ value, label = "Payload" }) {
  const shown = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return html`<pre class="text" tabindex="0" aria-label=${label} role="region">${shown}</pre>`;
}

/** How far something is; without `of`, the end is not known, and without `done`, nothing yet. */
export function Progress({ done, of, what = "job" }) {
  const text = done == null ? "Starting …" : of == null ? `${plural(done, what)} so far` : `${done} of ${plural(of, what)}`;
  return html`<div class="row" role="status"><progress max=${of ?? 1} value=${of == null ? undefined : done}
    aria-label="Progress" /><span>${text}</span></div>`;
}

/** A field of a form with its label; `hint` is read out with it. */
export const Field = ({ label, hint, children }) => html`<label class="field">
  <span class="label">${label}</span>${children}${hint && html`<small>${hint}</small>`}</label>`;

/** A text field: of `form`, which is [values, setValues], it is the value `name`. */
export function Input({ form: [values, set], name, label, hint, ...more }) {
  const change = ({ target }) => set({ ...values, [name]: target.value });
  return html`<${Field} label=${label} hint=${hint}>
    <input value=${values[name] ?? ""} onInput=${change} spellcheck="false" autocomplete="off" ...${more}
      title=${more.type === "datetime-local" ? `Time in ${ZONE}` : undefined} /><//>`;
}

/** A choice: of `form` it is the value `name`, of `options` [[value, word]]. */
export const Select = ({ form: [values, set], name, label, options }) => html`<${Field} label=${label}>
  <select value=${values[name] ?? ""} onChange=${({ target }) => set({ ...values, [name]: target.value })}>
    ${options.map(([value, word]) => html`<option key=${value} value=${value}>${word}</option>`)}</select><//>`;

/** Return [dialog, open]: open(Dialog, props) sets `dialog`, which closes itself, with `onDone` if it did its work. */
export function useDialog(onDone) {
  const [open, setOpen] = useState(null);
  const onClose = (done) => {
    setOpen(null);
    if (done) onDone?.();
  };
  const dialog = open && html`<${open.Dialog} ...${open.props} onClose=${onClose} />`;
  return [dialog, (Dialog, props) => setOpen({ Dialog, props })];
}

/**
 * The dialog that confirms a change, shows how far it is, and then its result.
 *
 * `title` and children say what will happen. `act(report)` does it when `verb` is pressed: it returns the result to
 * show (text or markup) or throws; `report(markup)` shows how far it is.
 *
 * `danger` colours the verb; `typed` is a text to type first; `ready=${false}` switches the verb off; `onClose(done)`
 * must remove the dialog, `done` says whether it did its work.
 */
export function Confirm({ title, children, verb, act, onClose, danger, typed = "", ready = true, back = "Cancel" }) {
  const dialog = useRef(null);
  const form = useState({ typed: "" });
  const [{ stage, news, error, result }, setState] = useState({ stage: "open" });
  const busy = stage === "busy";
  const off = !ready || form[0].typed !== typed;
  useLayoutEffect(() => dialog.current.showModal(), []);
  useLayoutEffect(() => {
    if (stage === "done") dialog.current.querySelector(".verbs button").focus();
  }, [stage]);
  const report = (news) => setState({ stage: "busy", news });
  const run = async (event) => {
    event.preventDefault();
    if (off || busy) return;
    report(null);
    setState(await act(report).then((result) => ({ stage: "done", result }), (error) => ({ stage: "failed", error })));
  };
  const close = () => dialog.current.close();
  return html`<dialog ref=${dialog} aria-label=${title} closedby=${busy ? "none" : undefined}
    onCancel=${(event) => busy && event.preventDefault()} onClose=${() => onClose(stage === "done")}>
    <h2>${title}</h2>
    ${stage === "done"
      ? html`<div class="notice ok" role="status">${result}</div>
        <p class="verbs"><${Button} kind="primary" onClick=${close}>Close<//></p>`
      : html`<form onSubmit=${run}>
        ${children}
        ${typed && html`<${Input} form=${form} name="typed" label=${html`Type <code>${typed}</code> to confirm`} />`}
        ${news}
        <${Failure} error=${error} />
        <p class="verbs">
          <${Button} onClick=${close} why=${busy && "It has started"}>${back}<//>
          <${Button} type="submit" kind=${danger ? "danger" : "primary"} writes busy=${busy}
            why=${off && "First fill in the fields above"}>${busy ? "Working …" : verb}<//>
        </p>
      </form>`}
  </dialog>`;
}

export const Unreadable = ({ rows }) =>
  rows > 0 && html`<p>${plural(rows, "row")} cannot be read: see the API's log.</p>`;
