// What is shown to whoever comes without the token of a running console.

import { html, useState } from "./vendor/preact-htm.js";
import { keepToken } from "./api.js";
import { Button, Field } from "./parts.js";

export function Door({ refused, onOpen }) {
  const [text, setText] = useState("");
  const open = (event) => {
    event.preventDefault();
    if (text.trim() && keepToken(text)) onOpen();
  };
  return html`<main class="door view" id="main">
    <h1>${refused ? "This console was started anew" : "This page needs a console of your own"}</h1>
    <p>${refused ? "The token that this tab has is not the one of the console that runs now." : WHY}</p>
    <ol>
      <li>Run <code>dueline console</code>. It opens a page of its own, with your credentials.</li>
      <li>There, go to <code>${location.pathname + location.search}</code>, which is what this link shows.</li>
    </ol>
    <form onSubmit=${open}>
      <${Field} label="Or paste the address that the console printed, or its token">
        <input type="password" value=${text} onInput=${(event) => setText(event.target.value)} autocomplete="off" required />
      <//>
      <${Button} type="submit" kind="primary">Open<//>
    </form>
  </main>`;
}

const WHY = "What it shows is read with the rights of whoever runs the console. A link has none: the token is missing.";
