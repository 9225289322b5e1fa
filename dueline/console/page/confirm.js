// The dialog that asks before something is changed, shows how it goes, and tells what came of it.

import { html, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { Button, Failure, Field, useId } from "./parts.js";

/**
 * `title` and children say what will happen. `act(tell)` does it when `verb` is pressed: it returns the result to show
 * (text or markup; nothing: the dialog closes) or throws Failed; `tell(markup)` shows how far it is meanwhile.
 *
 * `danger` colours the verb; `typed` is a text to type first; `ready=${false}` switches the verb off; `onClose(done)` must
 * take the dialog away, `done` says whether it was done.
 */
export function Confirm({ title, children, verb, act, onClose, danger = false, typed = "", ready = true, back = "Cancel" }) {
  const dialog = useRef(null);
  const [stage, setStage] = useState({ name: "asking" });
  const [text, setText] = useState("");
  const id = useId();
  useLayoutEffect(() => dialog.current.showModal(), []);
  const close = () => dialog.current.close();
  const run = async (event) => {
    event.preventDefault();
    if (!ready || stage.name === "busy" || (typed && text !== typed)) return;
    setStage(await outcome(act, (news) => setStage({ name: "busy", news }), close));
  };
  const hold = (event) => stage.name === "busy" && event.preventDefault();
  return html`<dialog ref=${dialog} aria-labelledby=${id} onCancel=${hold} onClose=${() => onClose(stage.name === "done")}>
    <h2 id=${id}>${title}</h2>
    <form onSubmit=${run}>
      ${stage.name === "done"
        ? html`<${Told} result=${stage.result} close=${close} />`
        : html`<div class="said">${children}</div>
          ${typed && html`<${Typed} wanted=${typed} text=${text} setText=${setText} />`}
          ${stage.news}
          <${Failure} error=${stage.error} />
          <${Verbs} busy=${stage.name === "busy"} off=${!ready || text !== typed} ...${{ verb, danger, close, back }} />`}
    </form>
  </dialog>`;
}

async function outcome(act, tell, close) {
  tell(null);
  try {
    const result = await act(tell);
    if (!result) close();
    return { name: "done", result };
  } catch (error) {
    return { name: "failed", error };
  }
}

function Told({ result, close }) {
  const told = useRef(null);
  useLayoutEffect(() => told.current.querySelector(".verbs button").focus(), []);
  return html`<div class="said" ref=${told}><div class="notice ok" role="status">${result}</div>
    <p class="verbs"><${Button} kind="primary" onClick=${close}>Close<//></p></div>`;
}

function Typed({ wanted, text, setText }) {
  return html`<${Field} label=${html`Type <code>${wanted}</code> to confirm`}>
    <input value=${text} onInput=${(event) => setText(event.target.value)} autocomplete="off" spellcheck="false" />
  <//>`;
}

function Verbs({ busy, off, verb, danger, close, back }) {
  return html`<p class="verbs">
    <${Button} onClick=${close} why=${busy && "It has begun"}>${back}<//>
    <${Button} type="submit" kind=${danger ? "danger" : "primary"} writes busy=${busy}
      why=${off && "First fill in what is asked above"}>${busy ? "Working …" : verb}<//>
  </p>`;
}
