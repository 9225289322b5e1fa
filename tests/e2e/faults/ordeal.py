"""Thousands of jobs through a deployment whose ticks and ingests are killed again and again."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dueline import instant
from tests.e2e.faults import repeats
from tests.e2e.faults.books import Books
from tests.e2e.faults.killing import TICK, Kill, Killer
from tests.e2e.faults.stage import Play, Stage, dead_letters, is_ingested, reason_of, staged

QUEUES = Path(__file__).parent / "many_partitions.yaml"
SOON = (0.0, 20.0)
SOONEST_BY_THE_TABLE = 25.0
CALL_SECONDS = 2.0
MOST_JOBS_OF_A_CALL = 500
CANCELLED_SHARE = 0.2
# From sooner than ticks hand over what goes by the table to later; half of them at once.
CANCEL_WITHIN_SECONDS = 12.0
CANCEL_LANES = 4
SETTLE_SECONDS = 60
STRAGGLERS_SECONDS = 2
MOST_RIDDLES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much of an ordeal it is to be. Jobs that go by the table are due within `spread` seconds of each other."""

    kills: int
    jobs: int
    seconds: float
    spread: float
    again_after: int
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Survived:
    """What came of it. `unexplained` are failed ticks that no kill accounts for."""

    books: Books
    kills: list[Kill]
    causes: dict[str, list[str]]
    most_by_one_kill: int
    unexplained: list[str]
    letters: dict[str, list[str]]
    seconds: float
    told: str

    @property
    def is_good(self) -> bool:
        return not (self.books.lost or self.books.early or self.books.broken)

    @property
    def repeats_by_cause(self) -> Counter[str]:
        return Counter(cause for causes in self.causes.values() for cause in causes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far it is."""

    killed: int
    scheduled: int
    landed: int


def endure(
    plan: Plan, play: Play, folder: Path, *, on_progress: Callable[[Progress], None] = lambda _: None
) -> Survived:
    """Schedule, cancel and kill for so many seconds; let all that waits settle; count."""
    books, started = Books(), time.monotonic()
    killer = Killer(kills=plan.kills, seconds=plan.seconds)
    with staged(play, folder=folder, again_after=plan.again_after) as stage, books.receiving(stage):
        stage.proxy.around = killer
        watching = threading.Event()
        threading.Thread(target=_watch, args=(books, killer, on_progress, watching), daemon=True).start()
        _schedule_and_cancel(plan, stage, books)
        _wait_until_settled(stage, books, killer)
        watching.set()
        records = list(stage.proxy.records)
        causes = repeats.causes_of(books, records, killer.done)
        return Survived(
            books=books,
            kills=killer.done,
            causes=causes,
            most_by_one_kill=repeats.most_by_one_kill(books, records, killer.done),
            unexplained=_unexplained(stage.tick_faults, killer.done),
            letters={name: list(map(reason_of, found)) for name, found in dead_letters(stage).items()},
            seconds=time.monotonic() - started,
            told="\n\n".join([f"seed {plan.seed}", books.complaints(stage), *_riddles(stage, causes)]),
        )


def _schedule_and_cancel(plan: Plan, stage: Stage, books: Books) -> None:
    """Schedule in calls spread over the time, and take some jobs back at random moments."""
    scattered = random.Random(plan.seed)
    calls = max(1, round(plan.seconds / CALL_SECONDS), -(-plan.jobs // MOST_JOBS_OF_A_CALL))
    sizes = [plan.jobs // calls + (number < plan.jobs % calls) for number in range(calls)]
    queues, begun = list(stage.endpoints.queues), time.monotonic()
    with ThreadPoolExecutor(CANCEL_LANES) as cancelling:
        for number, size in enumerate(sizes):
            time.sleep(max(0.0, begun + number * plan.seconds / calls - time.monotonic()))
            wishes = [_wish(scattered, plan.spread) for _ in range(size)]
            ids = books.schedule(stage.http, queues[number % len(queues)], wishes)
            for id in scattered.sample(ids, round(len(ids) * CANCELLED_SHARE)):
                moment = scattered.choice([0.0, scattered.uniform(0, CANCEL_WITHIN_SECONDS)])
                threading.Timer(moment, cancelling.submit, (books.cancel, stage.http, id)).start()
        time.sleep(CANCEL_WITHIN_SECONDS)


def _wish(scattered: random.Random, spread: float) -> dict[str, Any]:
    """Return a job to schedule: a fifth go direct, two fifths by the table, two fifths due in one rush with others."""
    kind = scattered.random()
    if kind < 0.2:
        return {"payload": {"n": 1}, "delay": round(scattered.uniform(*SOON), 3)}
    if kind < 0.6:
        return {"payload": {"n": 1}, "delay": round(SOONEST_BY_THE_TABLE + scattered.uniform(0, spread), 3)}
    soonest = datetime.now(UTC).timestamp() + SOONEST_BY_THE_TABLE
    rush = (soonest // spread + 1) * spread
    return {"payload": {"n": 1}, "at": instant.text(datetime.fromtimestamp(rush, UTC))}


def _watch(books: Books, killer: Killer, on_progress: Callable[[Progress], None], stop: threading.Event) -> None:
    while not stop.wait(0.5):
        on_progress(Progress(killed=len(killer.done), scheduled=len(books.accepted), landed=len(books.times)))


def _wait_until_settled(stage: Stage, books: Books, killer: Killer) -> None:
    """Wait until every job is due, what should arrive has, and nothing waits to be ingested; then for stragglers."""
    last = max(job.due for job in books.accepted.values())
    deadline = last + timedelta(seconds=SETTLE_SECONDS)
    while datetime.now(UTC) < deadline:
        if datetime.now(UTC) > last and killer.is_done and not books.lost and is_ingested(stage):
            break
        time.sleep(0.2)
    time.sleep(STRAGGLERS_SECONDS)


def _riddles(stage: Stage, causes: dict[str, list[str]]) -> list[str]:
    """Tell what befell the first few jobs whose repeats nothing explains."""
    riddles = [id for id, found in causes.items() if repeats.UNEXPLAINED in found]
    return list(map(stage.story_of, riddles[:MOST_RIDDLES]))


def _unexplained(faults: list[BaseException], kills: list[Kill]) -> list[str]:
    """Return the failed ticks for which there is no kill.

    There may be more kills: the emulator fires the deployed schedules too, once a minute, and nobody hears of those.
    """
    deaths = [fault for fault in map(str, faults) if "Worker process died" in fault]
    others = [fault for fault in map(str, faults) if "Worker process died" not in fault]
    return others + deaths[sum(kill.function == TICK for kill in kills) :]
