"""Jobs through a deployment whose ticks and ingests are killed again and again."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx

from dueline.model import instant
from dueline.protocol.tick import CHECKPOINT_JOBS, WAVE_JOBS
from local.summary import percentile
from local.ticks import not_slow
from tests.e2e.faults import repeats
from tests.e2e.faults.books import Books
from tests.e2e.faults.killing import TICK, Kill, Killer
from tests.e2e.faults.stage import Play, Stage, dead_letters, described, is_ingested, staged
from tests.e2e.faults.story import Story
from tests.e2e.inbox import wait_until

QUEUES = Path(__file__).parent / "many_partitions.yaml"
SOON = (0.0, 20.0)
SOONEST_BY_THE_TABLE = 25.0
CALL_SECONDS = 2.0
MOST_JOBS_OF_A_CALL = 500
JOBS_OF_AN_EXTRA_CALL = 10
CANCELLED_SHARE = 0.2
# From sooner than ticks hand over what goes by the table to later; half of them at once.
CANCEL_WITHIN_SECONDS = 12.0
CANCEL_LANES = 4
FEWEST_PROMISES = 3
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
class Progress:
    """How far it is."""

    killed: int
    scheduled: int
    landed: int


def endure(plan: Plan, play: Play, folder: Path, *, on_progress: Callable[[Progress], None] = lambda _: None) -> Story:
    """Schedule, cancel and kill for so many seconds, and on until all kills are done; let what waits settle; count."""
    books, started, story = Books(), time.monotonic(), Story(told=f"seed {plan.seed}\n")
    killer = Killer(kills=plan.kills, seconds=plan.seconds)
    with staged(play, folder=folder, again_after=plan.again_after) as stage, books.receiving(stage):
        stage.proxy.around = killer
        watching = threading.Event()
        threading.Thread(target=_watch, args=(books, killer, on_progress, watching), daemon=True).start()
        _Caller(plan, stage, books).schedule_and_cancel(killer)
        wait_until(lambda: not books.lost and is_ingested(stage))
        story.expect(stage.let_ticks_pass(books.last_due), "ticks have ended")
        watching.set()
        _close(story, stage, books, killer)
        story.expect(len(killer.done) == plan.kills, f"{len(killer.done)} of {plan.kills} kills were done")
        books.close(story, stage)
    story.figures["duration in s"] = round(time.monotonic() - started, 1)
    return story


class _Caller:
    """Schedules jobs, and takes some back."""

    def __init__(self, plan: Plan, stage: Stage, books: Books) -> None:
        self._plan, self._stage, self._books = plan, stage, books
        self._scattered = random.Random(plan.seed)
        self._queues = cycle(stage.endpoints.queues)
        self._timers: list[threading.Timer] = []

    def schedule_and_cancel(self, killer: Killer) -> None:
        """Schedule in calls spread over the time; then, however slow the machine, until there is enough of all."""
        plan = self._plan
        calls = max(1, round(plan.seconds / CALL_SECONDS), -(-plan.jobs // MOST_JOBS_OF_A_CALL))
        begun = time.monotonic()
        with ThreadPoolExecutor(CANCEL_LANES) as cancelling:
            for number in range(calls):
                time.sleep(max(0.0, begun + number * plan.seconds / calls - time.monotonic()))
                self._call(plan.jobs // calls + (number < plan.jobs % calls), cancelling)
            time.sleep(CANCEL_WITHIN_SECONDS)
            for further in count(1):
                if killer.is_done and self._promises() >= FEWEST_PROMISES:
                    break
                self._call(JOBS_OF_AN_EXTRA_CALL, cancelling, further=further)
                time.sleep(CALL_SECONDS)
            for timer in self._timers:
                timer.join()

    def _promises(self) -> int:
        return list(self._books.cancels.values()).count(httpx.codes.OK)

    def _call(self, jobs: int, cancelling: ThreadPoolExecutor, *, further: float = 0) -> None:
        wishes = [self._wish(further) for _ in range(jobs)]
        ids = self._books.schedule(self._stage.http, next(self._queues), wishes)
        for id in self._scattered.sample(ids, round(len(ids) * CANCELLED_SHARE)):
            moment = self._scattered.choice([0.0, self._scattered.uniform(0, CANCEL_WITHIN_SECONDS)])
            timer = threading.Timer(moment, cancelling.submit, (self._books.cancel, self._stage.http, id))
            self._timers.append(timer)
            timer.start()

    def _wish(self, further: float) -> dict[str, Any]:
        """Return a job: a fifth go direct, two fifths by the table, two fifths due in one rush with others."""
        kind, spread, soonest = self._scattered.random(), self._plan.spread, SOONEST_BY_THE_TABLE + further
        if kind < 0.2:
            return {"payload": {"n": 1}, "delay": round(self._scattered.uniform(*SOON), 3)}
        if kind < 0.6:
            return {"payload": {"n": 1}, "delay": round(soonest + self._scattered.uniform(0, spread), 3)}
        rush = ((datetime.now(UTC).timestamp() + soonest) // spread + 1) * spread
        return {"payload": {"n": 1}, "at": instant.text(datetime.fromtimestamp(rush, UTC))}


def _watch(books: Books, killer: Killer, on_progress: Callable[[Progress], None], stop: threading.Event) -> None:
    while not stop.wait(0.5):
        on_progress(Progress(killed=len(killer.done), scheduled=len(books.accepted), landed=len(books.times)))


def _close(story: Story, stage: Stage, books: Books, killer: Killer) -> None:
    """Write what the kills did into a story: why jobs came twice, which ticks failed, what is parked."""
    records, kills = list(stage.proxy.records), killer.done
    causes = repeats.causes_of(books, records, kills)
    riddles = [id for id, found in causes.items() if repeats.UNEXPLAINED in found]
    story.expect(not riddles, f"{len(riddles)} jobs arrived more than once for no cause")
    story.told += "\n\n".join(map(stage.story_of, riddles[:MOST_RIDDLES]))
    most = repeats.most_by_one_kill(books, records, kills)
    story.expect(most <= CHECKPOINT_JOBS + WAVE_JOBS, f"one killed tick repeated {most} jobs")
    faults = _unexplained(stage.tick_faults, kills)
    story.expect(not faults, f"ticks failed that were not killed: {faults}")
    letters = dead_letters(stage)
    story.expect(not letters, f"parked: {described(letters)}")
    lateness = books.lateness()
    story.figures = {
        "kills": len(kills),
        "kills by step": dict(sorted(Counter(map(str, kills)).items())),
        "repeats by cause": dict(Counter(cause for found in causes.values() for cause in found)),
        "most jobs repeated by one killed tick": most,
        "lateness in s": {f"p{percent}": round(percentile(lateness, percent), 3) for percent in (50, 95, 100)},
    }


def _unexplained(faults: list[BaseException], kills: list[Kill]) -> list[str]:
    """Return the failed ticks for which there is neither a kill nor a request that the machine was too slow for.

    There may be more kills: the emulator fires the deployed schedules too, once a minute, and nobody hears of those.
    """
    told = not_slow(faults)
    deaths = [fault for fault in told if "Worker process died" in fault]
    others = [fault for fault in told if "Worker process died" not in fault]
    return others + deaths[sum(kill.function == TICK for kill in kills) :]
