// The dialog that asks before something is changed, shows how it goes, and tells what came of it.

import { html, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { Button, Failure, Input } from "./parts.js";

/**
 * `title` and children say what will happen. `act(tell)` does it when `verb` is pressed: it returns the result to show
 * (text or markup) or throws Failed; `tell(markup)` shows how far it is meanwhile.
 *
 * `danger` colours the verb; `typed` is a text to type first; `ready=${false}` switches the verb off; `onClose(done)`
 * must take the dialog away, `done` says whether it was done.
 */
export function Confirm({ title, children, verb, act, onClose, danger, typed = "", ready = true, back = "Cancel" }) {
  const dialog = useRef(null);
  const form = useState({ typed: "" });
  const [{ stage, news, error, result }, setState] = useState({ stage: "asking" });
  const busy = stage === "busy";
  const off = !ready || form[0].typed !== typed;
  useLayoutEffect(() => dialog.current.showModal(), []);
  useLayoutEffect(() => {
    if (stage === "done") dialog.current.querySelector(".verbs button").focus();
  }, [stage]);
  const tell = (news) => setState({ stage: "busy", news });
  const run = async (event) => {
    event.preventDefault();
    if (off || busy) return;
    tell(null);
    setState(await act(tell).then((result) => ({ stage: "done", result }), (error) => ({ stage: "failed", error })));
  };
  const close = () => dialog.current.close();
  return html`<dialog ref=${dialog} aria-label=${title} onCancel=${(event) => busy && event.preventDefault()}
    onClose=${() => onClose(stage === "done")}>
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
          <${Button} onClick=${close} why=${busy && "It has begun"}>${back}<//>
          <${Button} type="submit" kind=${danger ? "danger" : "primary"} writes busy=${busy}
            why=${off && "First fill in what is asked above"}>${busy ? "Working …" : verb}<//>
        </p>
      </form>`}
  </dialog>`;
}
