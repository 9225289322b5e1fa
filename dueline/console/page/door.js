// What is shown to whoever comes without the token of a running console.

import { html, useState } from "./vendor/preact-htm.js";
import { keepToken } from "./api.js";
import { Button, Input } from "./parts.js";

const WHY = "What it shows is read with the rights of whoever runs the console. A link has none: the token is missing.";
const ANEW = "The token that this tab has is not the one of the console that runs now.";

export function Door({ refused, onOpen }) {
  const form = useState({ token: "" });
  const open = (event) => {
    event.preventDefault();
    keepToken(form[0].token);
    onOpen();
  };
  return html`<main class="door view" id="main">
    <h1>${refused ? "This console was started anew" : "This page needs a console of your own"}</h1>
    <p>${refused ? ANEW : WHY}</p>
    <ol>
      <li>Run <code>dueline console</code>. It opens a page of its own, with your credentials.</li>
      <li>There, go to <code>${location.pathname + location.search}</code>, which is what this link shows.</li>
    </ol>
    <form class="row" onSubmit=${open}>
      <${Input} form=${form} name="token" label="Or paste the address that the console printed, or its token"
        type="password" required />
      <${Button} type="submit" kind="primary">Open<//>
    </form>
  </main>`;
}
