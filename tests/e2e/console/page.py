"""The console as its user meets it: by the roles and names that the browser tells a screen reader, and by text."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    JavascriptException,
    StaleElementReferenceException,
    TimeoutException,
    WebDriverException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.e2e.console.reader import Name, Node, element, is_named, nodes
from tests.waiting import wait_until

# A page that is drawn anew under the pointer, or left for another one.
_MOVED = (StaleElementReferenceException, ElementClickInterceptedException, ElementNotInteractableException)
_LEFT = (
    "No node",
    "Could not find",
    "Cannot find",
    "no such execution context",
    "was destroyed",
    "navigated or closed",
    "properties of null",
)
# What does not change for so long is asked again nevertheless: a page has more to it than what is observed.
STILL_MS = 200
# Done at once where anything has changed since it was done last.
CHANGED = """
    const [still, done] = arguments;
    const watch = window.watch ??= {changed: true};
    let timer;
    const tell = () => {
        clearTimeout(timer);
        watch.changed = watch.tell = null;
        done();
    };
    if (!watch.observer) {
        watch.observer = new MutationObserver(() => { watch.changed = true; watch.tell?.(); });
        watch.observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
    }
    if (watch.changed) return tell();
    watch.tell = tell;
    timer = setTimeout(tell, still);
"""
HOLD = """
    const [part] = arguments;
    const ask = window.fetch;
    const held = new Promise((resolve) => { window.letGo = resolve; });
    window.fetch = async (path, asked) => {
        if (path.includes(part)) await held;
        return ask(path, asked);
    };
"""
# A click that lands elsewhere, since the page has moved under the pointer, does nothing.
AIM = """
    const keep = (event) => {
        const {aim} = window;
        window.aim = null;
        window.landed = !aim || aim.contains(event.target);
        if (!window.landed) { event.preventDefault(); event.stopImmediatePropagation(); }
    };
    if (!("landed" in window)) addEventListener("click", keep, {capture: true});
    [window.aim, window.landed] = [arguments[0], false];
    return window.aim.getAttribute("aria-disabled") !== "true";
"""
# It did too where it has led to another page.
LANDED = "return window.landed !== false"


class Page:
    """A tab of the console at `url`, whose token is `token`."""

    def __init__(self, driver: webdriver.Chrome, *, url: str, token: str) -> None:
        self.driver, self.url, self.token = driver, url, token

    def open(self, path: str = "/") -> None:
        """Open a view as a link with the token does, from its beginning."""
        was_there = self.driver.current_url == f"{self.url}{path}"
        self.driver.get(f"{self.url}{path}#token={self.token}")
        if was_there:
            # With nothing new but a fragment, it has stayed as it was.
            self.driver.refresh()

    def all(self, role: str, name: Name | None = None) -> list[Node]:
        """Return what is there of a role, and of a name; of a pattern, what has it anywhere in its name."""
        return [node for node in nodes(self.driver, role) if is_named(node.name, name)]

    def see(self, role: str, name: Name | None = None, *, at: int = 0) -> WebElement:
        """Wait until something is there; return its element, or that of another one of several."""
        found: list[WebElement] = []

        def is_there() -> bool:
            there = self.all(role, name)
            found[:] = [] if len(there) <= at else [element(self.driver, there[at])]
            return bool(found)

        self.until(is_there, f"{role} {name}")
        return found[0]

    def click(self, role: str, name: Name | None = None, *, at: int = 0) -> None:
        """Click on something once it is there and not switched off."""

        def clicked() -> bool:
            found = self.see(role, name, at=at)
            if not self.driver.execute_script(AIM, found):
                return False
            found.click()
            return bool(self.driver.execute_script(LANDED))

        self.until(clicked, f"a click on {role} {name}")

    def is_off(self, button: Name) -> bool:
        """Wait until a button is there; tell whether it is switched off."""
        off: list[bool] = []
        self.until(lambda: off.append(self.see("button", button).get_attribute("aria-disabled") == "true"), f"{button}")
        return off[0]

    def fill(self, name: Name, text: str, *, role: str = "textbox") -> None:
        """Write into a field in place of what is in it."""

        def write() -> None:
            field = self.see(role, name)
            field.send_keys(Keys.CONTROL + "a", Keys.DELETE)
            field.send_keys(text)

        self.until(write, f"to write into {name}")

    def choose(self, name: Name, option: str) -> None:
        """Choose an option of a select by its text."""

        def choose() -> None:
            [found] = [
                each
                for each in self.see("combobox", name).find_elements(By.TAG_NAME, "option")
                if each.text.strip() == option
            ]
            found.click()

        self.until(choose, f"{option} of {name}")

    def set_time(self, name: Name, at: datetime) -> None:
        """Fill a field for a date and time of the reader's own: typing into one depends on the machine's language."""
        script = """
            const [field, ms] = arguments;
            const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
            Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, local);
            for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, {bubbles: true}));
        """
        ms = at.timestamp() * 1000
        self.until(lambda: self.driver.execute_script(script, self.see("DateTime", name), ms), f"to set {name}")

    def says(self, *texts: Name) -> None:
        """Wait until the page shows all of these texts."""
        for text in texts:
            self.until(lambda text=text: _has(self.text, text), f"{text!r}")

    def lacks(self, *texts: Name) -> None:
        """Wait until the page shows none of these texts."""
        for text in texts:
            self.until(lambda text=text: not _has(self.text, text), f"no {text!r}")

    def until(self, met: Callable[[], bool | None], what: str) -> None:
        """Wait until a condition is met, and ask again whenever the page has changed."""
        assert wait_until(lambda: self._did(met) or self._changed(), every=0), (
            f"waited for {what}; at {self.driver.current_url}:\n{self.text[:3000]}"
        )

    @property
    def text(self) -> str:
        """All that is shown, as text."""
        return str(self.driver.execute_script("return document.body.innerText")).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def path(self) -> str:
        return str(self.driver.execute_script("return location.pathname + location.search"))

    def is_answered(self, end: str, *statuses: int) -> None:
        """Wait until the server has answered this page's requests for a path that ends so, with these statuses."""
        script = "return performance.getEntriesByType('resource').map(each => [each.name, each.responseStatus])"

        def told() -> set[int]:
            return {status for name, status in self.driver.execute_script(script) if name.endswith(end)}

        self.until(lambda: told() == set(statuses), f"{statuses} from {end}")

    @contextmanager
    def holding(self, part: str) -> Iterator[None]:
        """Let what is asked for of paths with that part wait while the context is open: see what is shown meanwhile."""
        self.driver.execute_script(HOLD, part)
        yield
        self.driver.execute_script("window.letGo()")

    def fetched(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Ask the console's server what the page itself could: with its token, from its origin."""
        asked = {"method": method, "headers": {"X-Dueline-Console": self.token, **headers}}
        asked |= {} if body is None else {"body": json.dumps(body)}
        script = """
            const [path, asked, done] = arguments;
            fetch(path, asked).then(async answer => done([answer.status, await answer.text()]), e => done([0, `${e}`]));
        """
        status, text = self.driver.execute_async_script(script, path, asked)
        return status, text

    def _did(self, act: Callable[[], object]) -> bool:
        """Do it, and tell whether that succeeded: with what returns a truth, whether it is one."""
        try:
            return act() in (None, True)
        except _MOVED:
            return False
        except WebDriverException as error:
            if any(told in str(error) for told in _LEFT):
                return False
            raise

    def _changed(self) -> bool:
        """Wait until the page changes, or stays as it is for a moment; return False."""
        # A page that is left meanwhile has changed. The driver says then that the script failed, or at once that it
        # took too long.
        with suppress(JavascriptException, TimeoutException):
            self._did(lambda: self.driver.execute_async_script(CHANGED, STILL_MS))
        return False


def _has(text: str, wanted: Name) -> bool:
    return wanted in text if isinstance(wanted, str) else bool(wanted.search(text))
