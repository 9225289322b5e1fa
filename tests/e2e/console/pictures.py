"""The pictures of the console in README and docs/console.md: `python -m tests.e2e.console.pictures`.

Each is a view in the middle of an incident, which happens in a local AWS.
"""

import base64
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from selenium import webdriver

from local.emulator import Emulator
from local.running import running
from local.template import ROOT
from tests.e2e.console import story
from tests.e2e.console.chromium import TELEPHONE, chromium, prefer, resize
from tests.e2e.console.page import Page
from tests.e2e.console.serving import administrator, serving
from tests.e2e.environment import environment_of

PICTURES = ROOT / "docs" / "pictures"
STORY = Path(__file__).parent / "story.yaml"
WIDTH, HEIGHT = 1280, 1100
# For dense views, whose files would be large.
LOW = 640


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A view, what is done in it, and until when: once the page shows all of `until`."""

    name: str
    path: str
    until: tuple[str, ...]
    act: Callable[[Page], object] = lambda _: None
    scheme: str = "light"
    width: int = WIDTH
    height: int = HEIGHT


def album(happened: story.Story) -> tuple[Picture, ...]:
    first = partial(Picture, path="/", until=("dead letters", "paused", "late", "%"))
    return (
        first(name="queues"),
        first(name="queues-dark", scheme="dark"),
        first(name="telephone", width=TELEPHONE[0]),
        Picture(name="queue", path="/queues/campaigns", until=("late", "counting ended", "dispatched")),
        Picture(name="jobs", path="/queues/campaigns/jobs", until=("black-friday",), height=LOW),
        Picture(name="recorded", path="/queues/emails/jobs?state=attempted", until=("Last began",), height=LOW),
        Picture(name="job", path=f"/queues/emails/jobs/{happened.retried}", until=("succeeded", "attempt")),
        Picture(name="dead-letters", path="/queues/webhooks/dead-letters", until=("KeyError", "in deliver"), act=_look),
        Picture(name="schedule", path="/queues/reminders/schedules/carts", until=("succeeded", "Next runs")),
    )


def _look(page: Page) -> None:
    page.click("button", "Inspect")
    page.click("checkbox", "Choose KeyError")
    page.says("those of KeyError")
    page.click("DisclosureTriangle", re.compile("^KeyError"))


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        running(STORY, emulator=Emulator(log=Path(scratch) / "log"), step=lambda _: nullcontext()) as deployed,
        administrator(deployed.emulator, deployed.endpoints.name) as client,
        story.running_story(deployed.emulator, deployed.endpoints, client) as happened,
        serving(environment_of(deployed.emulator, deployed.endpoints.name)) as served,
        chromium() as browser,
    ):
        page = Page(browser, served)
        for picture in album(happened):
            file = PICTURES / f"console-{picture.name}.png"
            file.write_bytes(_take(page, picture))
            sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes\n")


def _take(page: Page, picture: Picture) -> bytes:
    prefer(page.driver, picture.scheme)
    resize(page.driver, (picture.width, picture.height))
    page.open(picture.path)
    picture.act(page)
    page.says(*picture.until)
    return _shot(page.driver, picture)


def _shot(browser: webdriver.Chrome, picture: Picture) -> bytes:
    """Return what is shown as a PNG, no higher than the page is."""
    browser.execute_script("scrollTo(0, 0)")
    height = browser.execute_script("return Math.ceil(document.body.getBoundingClientRect().bottom)")
    clip = {"x": 0, "y": 0, "width": picture.width, "height": min(height, picture.height), "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    main()
