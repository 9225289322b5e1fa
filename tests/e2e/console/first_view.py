"""How soon the first view is shown, of twenty queues in a local run: `python -m tests.e2e.console.first_view`.

It prints the milliseconds from the navigation to the table with a row for each queue, and until each has its figures:
of the first time, while all functions are still starting, and of ten more, with their median. A machine that has other
things to do shows it later.
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
# Times are counted from the beginning of the navigation.
NOTE = f"""
    const look = () => {{
        const states = [...document.querySelectorAll("tbody .states")].map((each) => each.textContent);
        if (states.length !== {QUEUES}) return;
        window.table ??= performance.now();
        if (!states.includes("reading …")) window.figures ??= performance.now();
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
            page = Page(browser, served)
            times = [_shown_after(page) for _ in range(TIMES)]
    for what, (first, *others) in zip(("table", "figures"), zip(*times, strict=True), strict=True):
        sys.stdout.write(
            f"{json.dumps({what: {'first': first, 'next': others, 'median': statistics.median(others)}})}\n"
        )


def _shown_after(page: Page) -> list[int]:
    page.driver.get("about:blank")
    page.open()
    page.until(lambda: page.driver.execute_script("return window.figures !== undefined"), "the figures of all queues")
    return [int(each) for each in page.driver.execute_script("return [window.table, window.figures]")]


if __name__ == "__main__":
    main()
