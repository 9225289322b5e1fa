"""What the first view asks does not grow with what waits, and a tab that is open for an hour keeps its memory."""

import re
from pathlib import Path

import pytest

from dueline import Client, NewJob
from tests.e2e.console.page import Page

HOUR = (Path(__file__).parent / "hour.js").read_text()
# Until a browser has compiled what it compiles.
WARM = 240


pytestmark = pytest.mark.thorough


def test_the_first_view_asks_the_same_of_a_queue_with_more_than_it_counts(page: Page, client: Client) -> None:
    def calls() -> list[str]:
        script = "return performance.getEntriesByType('resource').map(each => new URL(each.name).pathname)"
        paths = page.driver.execute_script(script)
        return sorted(path for path in paths if path.startswith(("/api/", "/console/")))

    def asked() -> list[str]:
        page.open()
        page.see("rowheader", "invoices")
        page.until(lambda: "/console/figures" in calls(), "figures to be asked for")
        return calls()

    with_none = asked()
    client.schedule_many("invoices", [NewJob(payload=number, delay=7200, tenant="wrong") for number in range(1001)])
    assert asked() == with_none
    assert with_none == ["/console/about", "/console/figures", "/console/overview"]
    page.see("row", re.compile(r"^invoices .* 1,000\+ "))
    page.open("/queues/invoices")
    page.says(re.compile("or more jobs: counting ended"))


@pytest.mark.parametrize(("path", "refreshes"), [("/", 720), ("/queues/webhooks", 540)])
def test_an_hour_of_refreshes_leaves_no_more_nodes_listeners_or_memory(page: Page, path: str, refreshes: int) -> None:
    driver = page.driver
    faster = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HOUR})
    try:
        page.open(path)
        page.see("heading")
        warm, answered_before = held_after(page, WARM), answered(page)
        hour, answered_then = held_after(page, WARM + refreshes), answered(page)
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", faster)
    assert hour["Nodes"] <= warm["Nodes"] + 50
    assert hour["JSEventListeners"] <= warm["JSEventListeners"]
    # Compiled code comes and goes; whoever keeps what was answered keeps all of it.
    assert hour["JSHeapUsedSize"] - warm["JSHeapUsedSize"] < (answered_then - answered_before) / 2


def answered(page: Page) -> int:
    """Return how many characters the tab was answered."""
    return int(page.driver.execute_script("return window.answered"))


def held_after(page: Page, refreshes: int) -> dict[str, float]:
    """Return what the tab holds after so many refreshes, once all that it can let go of is gone."""
    page.until(lambda: page.driver.execute_script("return window.refreshes") >= refreshes, f"{refreshes} refreshes")
    page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    page.driver.execute_cdp_cmd("Performance.enable", {})
    told = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {each["name"]: each["value"] for each in told}
