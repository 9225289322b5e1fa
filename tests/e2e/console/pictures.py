"""The pictures of the console in README and docs/console.md: `python -m tests.e2e.console.pictures`.

They show a shop in the middle of an incident, which happens in a local AWS: a bug has filled a dead-letter queue, and a
queue is late.
"""

import base64
import math
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

from dueline import Client, NewJob, ReceivedJob, Retries, Worker
from dueline.config import metrics
from dueline.config.names import Names
from local.emulator import Emulator
from local.endpoints import Endpoints
from local.running import running
from local.template import ROOT
from tests.e2e.console.chromium import TELEPHONE, WIDE, chromium, resize
from tests.e2e.console.figures import put_figures
from tests.e2e.console.page import Page
from tests.e2e.console.serving import administrator, serving
from tests.e2e.deployed import environment_of, working
from tests.waiting import wait_until

PICTURES = ROOT / "docs" / "pictures"
STORY = Path(__file__).parent / "story.yaml"
HEIGHT = 1100
NAMES = ("ann", "bob", "carol", "dave", "eve", "frank", "grace", "heidi")
# Jobs a minute.
BUSY = {"emails": 140, "invoices": 22, "campaigns": 260, "webhooks": 90, "billing": 35, "reminders": 6}
MINUTES = 360
_chance = random.Random(15)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        running(STORY, emulator=Emulator(log=Path(scratch) / "log"), step=lambda _: nullcontext()) as deployed,
        administrator(deployed.emulator, deployed.endpoints.name) as client,
        working(_worker()),
        serving({"shop": (environment_of(deployed.emulator, deployed.endpoints.name),)}) as consoles,
        chromium() as browser,
    ):
        _have_an_incident(deployed.emulator, deployed.endpoints, client)
        _take_all(Page(browser, consoles["shop"]))


def _take_all(page: Page) -> None:
    first = ("dead letters", "paused", "late", "%")
    _take(page, "queues", "/", *first)
    _take(page, "telephone", "/", *first, width=TELEPHONE[0])
    _take(page, "queue", "/queues/campaigns", "late", "counting ended", "dispatched")
    _take(page, "recorded", "/queues/emails/jobs?state=attempted", "Last began")
    page.open("/queues/webhooks/dead-letters")
    page.click("button", "Inspect")
    page.click("checkbox", "Choose KeyError")
    page.says("those of KeyError")
    page.click("DisclosureTriangle", re.compile("^KeyError"))
    page.says("in deliver")
    _shoot(page, "dead-letters", WIDE[0])


def _take(page: Page, name: str, path: str, *until: str, width: int = WIDE[0]) -> None:
    """Take the picture of a view once it shows all of these texts."""
    resize(page.driver, (width, HEIGHT))
    page.open(path)
    page.says(*until)
    _shoot(page, name, width)


def _shoot(page: Page, name: str, width: int) -> None:
    """Write what is shown as a PNG, no higher than the page is."""
    page.driver.execute_script("scrollTo(0, 0)")
    height = page.driver.execute_script("return Math.ceil(document.body.getBoundingClientRect().bottom)")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, HEIGHT), "scale": 1}
    shot = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    file = PICTURES / f"console-{name}.png"
    file.write_bytes(base64.b64decode(shot["data"]))
    sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes\n")


def _have_an_incident(emulator: Emulator, endpoints: Endpoints, client: Client) -> None:
    assert wait_until(lambda: client.queue("campaigns").fence_age is not None)
    # Nothing of this queue is dispatched from now on.
    names = Names(endpoints.name)
    emulator.client("scheduler").delete_schedule(Name=names.schedule("campaigns", 0), GroupName=names.schedule_group)
    lines = [_figures(queue, minute) for queue in endpoints.queues for minute in range(MINUTES)]
    put_figures(emulator, endpoints.name, lines)
    client.schedule_many("campaigns", list(_campaign()))
    client.schedule_many("invoices", [NewJob(payload={"invoice": 5200 + n}, delay=600 + 360 * n) for n in range(120)])
    client.set_rate("invoices", "50/s")
    client.pause("billing")
    client.schedule_many("billing", [NewJob(payload={"customer": name, "cents": 500}) for name in NAMES * 3])
    client.schedule_many("webhooks", [NewJob(payload={"order": 81000 + n, "event": "shipped"}) for n in range(52)])
    client.schedule_many("emails", [NewJob(payload={"to": f"{name}@example.com"}) for name in [*NAMES, "nobody"]])
    assert wait_until(lambda: (client.queue("webhooks").dead, client.queue("emails").dead) == (52, 1), every=0.5)


def _campaign() -> Iterator[NewJob]:
    """Yield jobs that go by the table: some are due when the pictures are taken, most in the next hours."""
    for number in range(1440):
        minute = min(355, int(abs(_chance.gauss(0, 80))) + 2)
        delay = 26 if number < 40 else minute * 60 + number % 60
        yield NewJob(payload={"campaign": "autumn", "to": f"{NAMES[number % 8]}{number}@example.com"}, delay=delay)


def _worker() -> Worker:
    """Return a worker of emails and webhooks: one e-mail is sent at the third attempt, one never, and no webhook."""
    worker = Worker("shop")

    @worker.job("emails")
    def send(job: ReceivedJob) -> None:
        if job.payload["to"] == "nobody@example.com" or (job.payload["to"] == "carol@example.com" and job.attempt < 3):
            raise ConnectionError("smtp.example.com closed the connection")

    @worker.job("webhooks", retry=Retries(attempts=1))
    def deliver(job: ReceivedJob) -> None:
        if job.payload["order"] % 4 == 0:
            raise TimeoutError("hooks.globex.example did not answer within 10 s")
        job.payload["delivery_address"]

    # The pictures show the shop's file, and no path of the machine that takes them.
    deliver.__code__ = deliver.__code__.replace(co_filename="/app/shop/webhooks.py", co_firstlineno=32)
    return worker


def _figures(queue: str, minute: int) -> tuple[timedelta, dict[str, Any]]:
    """Return a queue's figures of so many minutes ago."""
    jobs = int(BUSY[queue] * (1.6 + math.sin(minute / 23)) * _chance.uniform(0.8, 1.2))
    late = queue == "campaigns" and minute < 4
    delayed = int(jobs * 0.3) if queue == "campaigns" and minute < 7 else 0
    values = {
        metrics.DISPATCHED: 0 if late else jobs,
        metrics.ON_TIME: 0 if late else jobs - delayed,
        metrics.DELAYED: delayed,
        metrics.LATENESS: (4 - minute) * 60.0 if late else 0.0,
    }
    shown = {name: value for name, value in values.items() if value}
    return timedelta(minutes=minute), {"queue": queue, **shown}


if __name__ == "__main__":
    main()
