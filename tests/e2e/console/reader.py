"""What the browser tells a screen reader of a page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.remote.webelement import WebElement

Name = str | re.Pattern[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """What a screen reader is told of an element."""

    role: str
    name: str
    id: int


def nodes(driver: webdriver.Chrome, role: str) -> Iterator[Node]:
    """Yield what is there of a role. A row has no name: it is known by what its cells say."""
    if role == "row":
        told = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    else:
        document = driver.execute_cdp_cmd("Runtime.evaluate", {"expression": "document"})["result"]
        asked = {"objectId": document["objectId"], "role": role}
        told = driver.execute_cdp_cmd("Accessibility.queryAXTree", asked)["nodes"]
    tree = {each["nodeId"]: each for each in told}
    for each in told:
        if not each["ignored"] and "backendDOMNodeId" in each and each["role"]["value"] == role:
            said = " ".join(_said(each, tree)) if role == "row" else _name_of(each)
            yield Node(role=role, name=" ".join(said.split()), id=each["backendDOMNodeId"])


def element(driver: webdriver.Chrome, node: Node) -> WebElement:
    """Return the element of a node. Raises StaleElementReferenceException where its page was left."""
    told = driver.execute_cdp_cmd("DOM.resolveNode", {"backendNodeId": node.id})
    keep = "function () { window.found = this.nodeType === 1 ? this : this.parentElement; }"
    asked = {"objectId": told["object"]["objectId"], "functionDeclaration": keep}
    driver.execute_cdp_cmd("Runtime.callFunctionOn", asked)
    found: WebElement | None = driver.execute_script("return window.found")
    if found is None:
        raise StaleElementReferenceException("its page was left")
    return found


def is_named(name: str, wanted: Name | None) -> bool:
    return wanted is None or (name == wanted if isinstance(wanted, str) else bool(wanted.search(name)))


def _name_of(node: dict[str, Any]) -> str:
    return str(node.get("name", {}).get("value", ""))


def _said(node: dict[str, Any], tree: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the texts below a node."""
    if node["role"]["value"] == "StaticText":
        yield _name_of(node)
    for child in node.get("childIds", []):
        if child in tree and node["role"]["value"] != "StaticText":
            yield from _said(tree[child], tree)
