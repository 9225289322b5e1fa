"""Two hundred jobs through a storm: every mishap at once, on every way between the functions and AWS."""

import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import straight
from tests.e2e.faults.mishaps import Storm
from tests.e2e.faults.stage import Play, Stage, dead_letters, staged
from tests.e2e.inbox import wait_until

SEED = 7
JOBS_OF_THE_CALLS = (1, 20, 1, 20, 1) * 5
LANES = 4
SOON = (0, 20)
BY_THE_TABLE = (25, 29)
CANCELLED_SHARE = 0.15
STORM_SECONDS = 32
LATEST_SECONDS = 30
AGAIN_AFTER_SECONDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Stormed:
    """What came of it. `told` is what happened to each job with which something is wrong."""

    asked: int
    books: Books
    befell: dict[str, int]
    letters: dict[str, list[dict[str, Any]]]
    told: str


def weather_a_storm(play: Play, folder: Path) -> Stormed:
    scattered = random.Random(SEED)
    calls = [[_wish(scattered) for _ in range(size)] for size in JOBS_OF_THE_CALLS]
    books, storm = Books(), Storm(seed=SEED)
    with staged(play, folder=folder, again_after=AGAIN_AFTER_SECONDS) as stage:
        with books.receiving(stage):
            stage.proxy.around = storm
            clearing = threading.Timer(STORM_SECONDS, setattr, (stage.proxy, "around", straight))
            clearing.start()
            _schedule_and_cancel(stage, books, calls, scattered)
            clearing.join()
            wait_until(lambda: not books.lost, seconds=LATEST_SECONDS)
            time.sleep(AGAIN_AFTER_SECONDS)
        return Stormed(
            asked=sum(map(len, calls)),
            books=books,
            befell=dict(storm.befell),
            letters=dead_letters(stage),
            told=f"seed {SEED}\n{books.complaints(stage)}",
        )


def _wish(scattered: random.Random) -> dict[str, Any]:
    return {"payload": {"n": 1}, "delay": round(scattered.uniform(*scattered.choice((SOON, BY_THE_TABLE))), 3)}


def _schedule_and_cancel(
    stage: Stage, books: Books, calls: list[list[dict[str, Any]]], scattered: random.Random
) -> None:
    """Schedule the jobs of each call, and take a share of them back at once, and of the rest when all are scheduled."""
    queues = itertools.cycle(("emails", "invoices"))
    chosen = (scattered.random() < CANCELLED_SHARE for _ in itertools.count())

    def follow(call: list[dict[str, Any]], queue: str) -> None:
        for id in itertools.compress(books.schedule(stage.http, queue, call), chosen):
            books.cancel(stage.http, id)

    with ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(follow, calls, queues))
        for id in itertools.compress(sorted(books.promised), chosen):
            lanes.submit(books.cancel, stage.http, id)
