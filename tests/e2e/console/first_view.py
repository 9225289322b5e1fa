"""How soon the first view is shown, of twenty queues in a local run: `python -m tests.e2e.console.first_view`.

It prints the milliseconds from the navigation to the table: of the first time, while all functions are still starting,
and of ten more, with their median. A machine that has other things to do shows it later.
"""

import json
import statistics
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from local.emulator import Emulator
from local.running import running
from tests.e2e.console.chromium import chromium
from tests.e2e.console.page import Page
from tests.e2e.console.serving import serving
from tests.e2e.environment import environment_of

QUEUES, TIMES = 20, 11
# A row for each queue; times are counted from the beginning of the navigation.
NOTE = f"""
    const look = () => {{
        if (document.querySelectorAll("tbody tr").length === {QUEUES}) window.shown ??= performance.now();
    }};
    new MutationObserver(look).observe(document, {{subtree: true, childList: true}});
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        queues = Path(scratch) / "queues.yaml"
        queues.write_text(json.dumps({"name": "view", "queues": {f"queue-{n:02}": {} for n in range(1, QUEUES + 1)}}))
        emulator = Emulator(log=Path(scratch) / "log")
        with (
            running(queues, emulator=emulator, step=lambda _: nullcontext()) as deployed,
            serving(environment_of(deployed.emulator, deployed.endpoints.name)) as served,
            chromium() as browser,
        ):
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NOTE})
            page = Page(browser, url=served.url, token=served.token)
            times = [_shown_after(page) for _ in range(TIMES)]
    figures = {"first": times[0], "next": times[1:], "median": statistics.median(times[1:])}
    sys.stdout.write(f"{json.dumps(figures)}\n")


def _shown_after(page: Page) -> int:
    page.driver.get("about:blank")
    page.open()
    page.until(lambda: page.driver.execute_script("return window.shown !== undefined"), "the table")
    return int(page.driver.execute_script("return Math.round(window.shown)"))


if __name__ == "__main__":
    main()
