"""A tab that is open for an hour keeps its memory."""

from pathlib import Path

import pytest

from tests.e2e.console.page import Page

HOUR = (Path(__file__).parent / "hour.js").read_text()
# Until a browser has compiled what it compiles.
WARM = 240


pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(("path", "refreshes"), [("/", 720), ("/queues/webhooks", 540)])
def test_an_hour_of_refreshes_leaks_nothing(page: Page, path: str, refreshes: int) -> None:
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
    # Compiled code comes and goes; a leak of answers keeps all of them.
    assert hour["JSHeapUsedSize"] - warm["JSHeapUsedSize"] < (answered_then - answered_before) / 2


def answered(page: Page) -> int:
    """Return how many characters the tab was sent."""
    return int(page.driver.execute_script("return window.answered"))


def held_after(page: Page, refreshes: int) -> dict[str, float]:
    """Return what the tab holds after so many refreshes and a garbage collection."""
    page.until(lambda: page.driver.execute_script("return window.refreshes") >= refreshes, f"{refreshes} refreshes")
    page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    page.driver.execute_cdp_cmd("Performance.enable", {})
    values = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {each["name"]: each["value"] for each in values}
