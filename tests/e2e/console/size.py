"""How soon the page shows a deployment in which much waits: measured, over a local AWS and in a browser.

The local AWS keeps everything but the table of jobs: of that it would read every row for each request, so it is asked
of dynalite, over a store on disk, which finds a row as fast among a million as among some.
"""

import base64
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import yaml

from bench import jobs_table
from bench.growth.engine import Rows
from bench.growth.engine import running as engine_running
from dueline.config.names import Names
from dueline.model import rows
from dueline.model.job import Job, JobId, Partition, Route
from local.emulator import CREDENTIALS, REGION, Emulator
from local.endpoints import Endpoints
from local.running import Step, running
from tests.e2e.console.chromium import chromium
from tests.e2e.console.page import Page
from tests.e2e.console.serving import serving
from tests.e2e.environment import environment_of

NAME, FULL = "size", "emails"
ROUNDS = 7
# Notes when what is looked for is there first, in ms after the view was asked for.
SHOWN = """
const found = () => %s;
const look = new MutationObserver(() => {
  if (!found()) return;
  window.shown = performance.now();
  look.disconnect();
});
look.observe(document, {subtree: true, childList: true});
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """So many jobs and dead letters of one queue, and so many queues in all."""

    jobs: int
    dead: int
    queues: int

    @property
    def names(self) -> list[str]:
        return [FULL, *(f"queue-{number:02}" for number in range(1, self.queues))]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A view, and what is there once it is shown."""

    name: str
    path: str
    shown: str


def views(size: Size) -> list[View]:
    many, queue = f"document.querySelectorAll('tbody tr').length >= {size.queues}", f"/queues/{FULL}"
    return [
        View(name=f"{size.queues} queues", path="/", shown=many),
        View(name="a queue", path=queue, shown="document.querySelector('.tiles')"),
        View(name="… and what is due", path=queue, shown="document.querySelector('.chart .uplot')"),
        View(name="its jobs", path=f"{queue}/jobs", shown="document.querySelector('tbody tr')"),
        View(name="its dead letters", path=f"{queue}/dead-letters", shown="document.querySelector('.view p strong')"),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """After how many ms a view was there, of each round, and what CPU time one took of the browser and all behind."""

    ms: list[float]
    cpu_seconds: float

    def __str__(self) -> str:
        return f"{statistics.median(self.ms):5.0f} ms, at worst {max(self.ms):5.0f} ms; {self.cpu_seconds:.2f} s of CPU"


def measure(size: Size, *, step: Step, picture: Path | None) -> Iterator[tuple[str, Taken]]:
    """Yield each view's name, and what it took."""
    with _up(size, step=step) as (emulator, endpoints):
        with step(f"put {size.dead:,} dead letters"):
            _bury(emulator, endpoints, size.dead)
        with serving(environment_of(emulator, NAME)) as served, chromium() as browser:
            page = Page(browser, url=served.url, token=served.token)
            for view in views(size):
                # The first time, functions start that nobody has asked for yet.
                _taken(page, view)
                began = _cpu_seconds()
                ms = [_taken(page, view) for _ in range(ROUNDS)]
                yield view.name, Taken(ms=ms, cpu_seconds=(_cpu_seconds() - began) / ROUNDS)
            if picture:
                picture.write_bytes(_shot(page))


@contextmanager
def _up(size: Size, *, step: Step) -> Iterator[tuple[Emulator, Endpoints]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        queues = folder / "queues.yaml"
        queues.write_text(yaml.safe_dump({"name": NAME, "queues": dict.fromkeys(size.names)}))
        with step(f"load {size.jobs:,} jobs"):
            engine = stack.enter_context(engine_running(folder / "table", _scheduled(size.jobs)))
        _create_tables(engine.dynamodb)
        emulator = Emulator(log=folder / "log", environment={"AWS_ENDPOINT_URL_DYNAMODB": engine.dynamodb})
        # Ticks once a minute, as on AWS: those of 50 queues each second would be all that is done.
        deployed = stack.enter_context(running(queues, emulator=emulator, step=step, real_schedule=True))
        yield emulator, deployed.endpoints


def _scheduled(count: int) -> Rows:
    """Return so many jobs that wait in one partition, due one a second from an hour on."""
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    id = JobId(partition=Partition(queue=FULL, number=0), route=Route.TABLE, due=first, uid="0" * 36)
    job = Job(id=id, payload='{"to": "ann@example.com", "template": "welcome"}', expires=first + timedelta(days=90))
    return Rows(table=Names(NAME).table, count=count, row=rows.job_row(job), first=first, step=timedelta(seconds=1))


def _create_tables(endpoint: str) -> None:
    make: Any = boto3.client
    client = make("dynamodb", endpoint_url=endpoint, region_name=REGION, **CREDENTIALS)
    for name in (Names(NAME).table, Names(NAME).state):
        jobs_table.create_table(client, name)


def _bury(emulator: Emulator, endpoints: Endpoints, count: int) -> None:
    sqs, url = emulator.client("sqs"), endpoints.dead_letter_queues[FULL]
    error = {"dueline-error": {"DataType": "String", "StringValue": "KeyError"}}
    for start in range(0, count, 10):
        numbers = range(start, min(start + 10, count))
        entries = [{"Id": str(number), "MessageBody": "{}", "MessageAttributes": error} for number in numbers]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)


def _taken(page: Page, view: View) -> float:
    """Open a view in a tab that has seen nothing; return after how many ms it was there."""
    source = {"source": SHOWN % view.shown}
    page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    noted = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source)
    try:
        page.open(view.path)
        page.until(lambda: _shown(page) is not None, view.name)
        return float(_shown(page))
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", noted)


def _shown(page: Page) -> Any:
    return page.driver.execute_script("return window.shown")


def _shot(page: Page) -> bytes:
    """Return the first view as a PNG, whole."""
    page.open()
    page.see("heading", "Queues")
    page.until(lambda: bool(page.all("rowheader")), "the queues")
    told = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    return base64.b64decode(told["data"])


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it started and that run."""
    stats: dict[int, tuple[int, int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name before may have blanks: after it come the state, the parent, and as 12th and 13th the times.
            fields = file.read_text().rpartition(")")[2].split()
            stats[int(file.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in stats.items() if parent in ours} - ours:
        ours |= more
    return sum(stats[pid][1] for pid in ours) / os.sysconf("SC_CLK_TCK")
