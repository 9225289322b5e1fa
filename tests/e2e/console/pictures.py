"""The pictures of the console in README and docs/console.md: each view, in the middle of an incident."""

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from selenium import webdriver

from dueline import Client
from local.running import Running
from tests.e2e.console import story
from tests.e2e.console.chromium import TELEPHONE, chromium, prefer, resize
from tests.e2e.console.page import Page
from tests.e2e.console.serving import serving
from tests.e2e.environment import environment_of

WIDTH, MOST_HEIGHT = 1280, 1100


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A view, what is done in it, and until when: once the page shows all of `until`."""

    name: str
    path: str
    until: tuple[str, ...]
    act: Callable[[Page], object] = lambda _: None
    scheme: str = "light"
    width: int = WIDTH


def album(told: story.Told) -> tuple[Picture, ...]:
    return (
        Picture(name="queues", path="/", until=("dead letters", "paused")),
        Picture(name="queues-dark", path="/", until=("dead letters", "paused"), scheme="dark"),
        Picture(name="telephone", path="/", until=("dead letters", "paused"), width=TELEPHONE[0]),
    )


def take(deployed: Running, client: Client, into: Path) -> Iterator[Path]:
    """Let the story happen, and take each picture; yield their files."""
    told = story.tell(deployed.emulator, deployed.endpoints, client)
    into.mkdir(parents=True, exist_ok=True)
    with serving(environment_of(deployed.emulator, deployed.endpoints.name)) as served, chromium() as browser:
        page = Page(browser, url=served.url, token=served.token)
        for picture in album(told):
            prefer(browser, picture.scheme)
            resize(browser, (picture.width, MOST_HEIGHT), scale=1)
            page.open(picture.path)
            picture.act(page)
            page.says(*picture.until)
            file = into / f"console-{picture.name}.png"
            file.write_bytes(_shot(browser, picture.width))
            yield file


def _shot(browser: webdriver.Chrome, width: int) -> bytes:
    """Return what is shown as a PNG, no higher than the page is."""
    height = browser.execute_script("return Math.ceil(document.body.getBoundingClientRect().bottom)")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, MOST_HEIGHT), "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    return base64.b64decode(shot["data"])


_ = re
