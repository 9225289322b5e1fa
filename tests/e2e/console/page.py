"""The console as its user sees it: by the roles and names that a screen reader gets, and by text."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
    WebDriverException,
)
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.e2e.console.serving import Served
from tests.waiting import wait_until

Name = str | re.Pattern[str]
# A page that is drawn again under the pointer, or left for another one.
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
# To look at a page costs the browser CPU.
LOOK_EVERY_SECONDS = 0.1
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """What a screen reader gets of an element."""

    role: str
    name: str
    id: int


class Page:
    """A tab of a console."""

    def __init__(self, driver: webdriver.Chrome, console: Served) -> None:
        self.driver, self._console = driver, console

    def open(self, path: str = "/") -> None:
        """Open a view as a link with the token does, from its beginning."""
        url = f"{self._console.url}{path}"
        if self.driver.current_url == url:
            # With nothing new but a fragment, the page that is there would be seen before it reloads.
            self.driver.get("about:blank")
        self.driver.get(f"{url}#token={self._console.token}")

    def all(self, role: str, name: Name | None = None) -> list[Node]:
        """Return the nodes of a role, and with a name, or with a pattern anywhere in it."""
        return [node for node in nodes(self.driver, role) if is_named(node.name, name)]

    def see(self, role: str, name: Name | None = None) -> WebElement:
        """Wait until a node is there; return its element, that of the first of several."""
        elements: list[WebElement] = []

        def is_there() -> bool:
            there = self.all(role, name)
            elements[:] = [element(self.driver, each) for each in there[:1]]
            return bool(elements)

        self.until(is_there, f"{role} {name}")
        return elements[0]

    def click(self, role: str, name: Name | None = None) -> None:
        """Click on something once it is there and not switched off."""

        def clicked() -> bool:
            target = self.see(role, name)
            if not self.driver.execute_script(AIM, target):
                return False
            target.click()
            return bool(self.driver.execute_script(LANDED))

        self.until(clicked, f"a click on {role} {name}")

    def is_off(self, button: Name) -> bool:
        """Wait until a button is there; return whether it is switched off."""
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

    def says(self, *texts: Name) -> None:
        """Wait until the page shows all of these texts."""
        for text in texts:
            self.until(lambda text=text: _has(self.text, text), f"{text!r}")

    def lacks(self, *texts: Name) -> None:
        """Wait until the page shows none of these texts."""
        for text in texts:
            self.until(lambda text=text: not _has(self.text, text), f"no {text!r}")

    def until(self, condition: Callable[[], bool | None], what: str) -> None:
        """Wait until a condition is met."""
        assert wait_until(lambda: self._did(condition), every=LOOK_EVERY_SECONDS), (
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

        def answered() -> set[int]:
            return {status for name, status in self.driver.execute_script(script) if name.endswith(end)}

        self.until(lambda: answered() == set(statuses), f"{statuses} from {end}")

    def _did(self, act: Callable[[], object]) -> bool:
        """Do it, and return whether that succeeded: for what returns a truth, whether it is one."""
        try:
            return act() in (None, True)
        except _MOVED:
            return False
        except WebDriverException as error:
            if any(message in str(error) for message in _LEFT):
                return False
            raise


def _has(text: str, expected: Name) -> bool:
    return expected in text if isinstance(expected, str) else bool(expected.search(text))


def nodes(driver: webdriver.Chrome, role: str) -> Iterator[Node]:
    """Yield the nodes of a role. A row has no name of its own: its name here is the text of its cells."""
    if role == "row":
        raw = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    else:
        document = driver.execute_cdp_cmd("Runtime.evaluate", {"expression": "document"})["result"]
        query = {"objectId": document["objectId"], "role": role}
        raw = driver.execute_cdp_cmd("Accessibility.queryAXTree", query)["nodes"]
    tree = {each["nodeId"]: each for each in raw}
    for each in raw:
        if not each["ignored"] and "backendDOMNodeId" in each and each["role"]["value"] == role:
            text = " ".join(_texts(each, tree)) if role == "row" else _name_of(each)
            yield Node(role=role, name=" ".join(text.split()), id=each["backendDOMNodeId"])


def element(driver: webdriver.Chrome, node: Node) -> WebElement:
    """Return the element of a node. Raises StaleElementReferenceException where its page was left."""
    resolved = driver.execute_cdp_cmd("DOM.resolveNode", {"backendNodeId": node.id})
    keep = "function () { window.kept = this.nodeType === 1 ? this : this.parentElement; }"
    call = {"objectId": resolved["object"]["objectId"], "functionDeclaration": keep}
    driver.execute_cdp_cmd("Runtime.callFunctionOn", call)
    kept: WebElement | None = driver.execute_script("return window.kept")
    if kept is None:
        raise StaleElementReferenceException("its page was left")
    return kept


def is_named(name: str, expected: Name | None) -> bool:
    return expected is None or (name == expected if isinstance(expected, str) else bool(expected.search(name)))


def _name_of(node: dict[str, Any]) -> str:
    return str(node.get("name", {}).get("value", ""))


def _texts(node: dict[str, Any], tree: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the texts below a node."""
    if node["role"]["value"] == "StaticText":
        yield _name_of(node)
    for child in node.get("childIds", []):
        if child in tree and node["role"]["value"] != "StaticText":
            yield from _texts(tree[child], tree)
