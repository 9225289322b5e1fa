"""The console as its user meets it: by the roles and names that the browser tells a screen reader, and by text."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
    WebDriverException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.waiting import wait_until

# A page that is drawn anew under the pointer.
_MOVED = (StaleElementReferenceException, ElementClickInterceptedException, ElementNotInteractableException)
Name = str | re.Pattern[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """What a screen reader is told of an element."""

    role: str
    name: str
    id: int


class Page:
    """A tab of the console at `url`, whose token is `token`."""

    def __init__(self, driver: webdriver.Chrome, *, url: str, token: str) -> None:
        self.driver, self.url, self.token = driver, url, token

    def open(self, path: str = "/") -> None:
        """Open a view as a link with the token does, from its beginning."""
        if self.driver.current_url == f"{self.url}{path}":
            # With nothing new but a fragment, it would stay as it is.
            self.driver.get("about:blank")
        self.driver.get(f"{self.url}{path}#token={self.token}")

    def all(self, role: str, name: Name | None = None) -> list[Node]:
        """Return what is there of a role, and of a name; of a pattern, what has it anywhere in its name."""
        return [node for node in self._nodes() if node.role == role and _is_named(node.name, name)]

    def see(self, role: str, name: Name | None = None, *, at: int = 0) -> WebElement:
        """Wait until something is there; return its element, or that of another one of several."""
        found: list[WebElement] = []

        def is_there() -> bool:
            nodes = self.all(role, name)
            found[:] = [] if len(nodes) <= at else [self._element(nodes[at])]
            return bool(found)

        self.until(is_there, f"{role} {name}")
        return found[0]

    def click(self, role: str, name: Name | None = None, *, at: int = 0) -> None:
        self.until(lambda: self._did(lambda: self.see(role, name, at=at).click()), f"a click on {role} {name}")

    def fill(self, name: Name, text: str, *, role: str = "textbox") -> None:
        """Write into a field in place of what is in it."""

        def write() -> None:
            field = self.see(role, name)
            field.send_keys(Keys.CONTROL + "a", Keys.DELETE)
            field.send_keys(text)

        self.until(lambda: self._did(write), f"to write into {name}")

    def choose(self, name: Name, option: str) -> None:
        """Choose an option of a select by its text."""

        def choose() -> None:
            [found] = [
                each
                for each in self.see("combobox", name).find_elements(By.TAG_NAME, "option")
                if each.text.strip() == option
            ]
            found.click()

        self.until(lambda: self._did(choose), f"{option} of {name}")

    def set_time(self, name: Name, at: datetime) -> None:
        """Fill a field for a date and time of the reader's own: typing into one depends on the machine's language."""
        script = """
            const [field, ms] = arguments;
            const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
            Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, local);
            for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, {bubbles: true}));
        """
        self.driver.execute_script(script, self.see("DateTime", name), at.timestamp() * 1000)

    def says(self, *texts: Name) -> None:
        """Wait until the page shows all of these texts."""
        for text in texts:
            self.until(lambda text=text: _has(self.text, text), f"{text!r}")

    def lacks(self, *texts: Name) -> None:
        """Wait until the page shows none of these texts."""
        for text in texts:
            self.until(lambda text=text: not _has(self.text, text), f"no {text!r}")

    def until(self, met: Callable[[], bool], what: str) -> None:
        assert wait_until(lambda: self._did(met), every=0.03), (
            f"waited for {what}; at {self.driver.current_url}:\n{self.text[:3000]}"
        )

    @property
    def text(self) -> str:
        """All that is shown, as text."""
        return str(self.driver.execute_script("return document.body.innerText")).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def path(self) -> str:
        return str(self.driver.execute_script("return location.pathname + location.search"))

    def statuses(self, end: str) -> set[int]:
        """Return with which statuses the server answered this page's requests for a path that ends so."""
        script = "return performance.getEntriesByType('resource').map(each => [each.name, each.responseStatus])"
        return {status for name, status in self.driver.execute_script(script) if name.endswith(end)}

    def slow(self, *, by: float) -> None:
        """Let every answer take so many seconds longer, so that what is shown meanwhile can be seen."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        asked = {"offline": False, "latency": by * 1000, "downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", asked)

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
            if "No node" in str(error) or "Could not find" in str(error):
                return False
            raise

    def _nodes(self) -> Iterator[Node]:
        tree = {
            each["nodeId"]: each for each in self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        }
        for each in tree.values():
            if not each["ignored"] and "backendDOMNodeId" in each:
                role, name = each["role"]["value"], _name_of(each)
                # A row has no name: it is known by what its cells say.
                said = " ".join(_said(each, tree)) if role == "row" else name
                yield Node(role=role, name=" ".join(said.split()), id=each["backendDOMNodeId"])

    def _element(self, node: Node) -> WebElement:
        told = self.driver.execute_cdp_cmd("DOM.resolveNode", {"backendNodeId": node.id})
        keep = "function () { window.found = this.nodeType === 1 ? this : this.parentElement; }"
        asked = {"objectId": told["object"]["objectId"], "functionDeclaration": keep}
        self.driver.execute_cdp_cmd("Runtime.callFunctionOn", asked)
        found: WebElement = self.driver.execute_script("return window.found")
        return found


def _name_of(node: dict[str, Any]) -> str:
    return str(node.get("name", {}).get("value", ""))


def _said(node: dict[str, Any], tree: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the texts below a node."""
    if node["role"]["value"] == "StaticText":
        yield _name_of(node)
    for child in node.get("childIds", []):
        if child in tree and node["role"]["value"] != "StaticText":
            yield from _said(tree[child], tree)


def _is_named(name: str, wanted: Name | None) -> bool:
    return wanted is None or (name == wanted if isinstance(wanted, str) else bool(wanted.search(name)))


def _has(text: str, wanted: Name) -> bool:
    return wanted in text if isinstance(wanted, str) else bool(wanted.search(text))
