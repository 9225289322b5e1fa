"""Jobs through a deployment whose functions, and direct producers, are killed again and again."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path

import httpx

from dueline.protocol.tick import CHECKPOINT_JOBS, WAVE_JOBS
from local.summary import percentile
from local.ticks import not_slow
from tests.e2e.faults import repeats
from tests.e2e.faults.books import FAULTS, Books
from tests.e2e.faults.callers import LATE, SOONEST_BY_THE_TABLE, Callers, Wishes, ways_of
from tests.e2e.faults.killing import TICK, Kill, Killer
from tests.e2e.faults.stage import Play, Stage, dead_letters, described, is_ingested, staged
from tests.e2e.faults.story import Story
from tests.e2e.inbox import wait_until

QUEUES = Path(__file__).parent / "many_partitions.yaml"
CALL_SECONDS = 2.0
MOST_JOBS_OF_A_CALL = 500
JOBS_OF_AN_EXTRA_CALL = 10
# Of the jobs, so many are cancelled, and as many moved.
SHARE = 0.2
# From sooner than ticks hand over what goes by the table to later; half of them at once.
LATER_WITHIN_SECONDS = 12.0
LATER_LANES = 4
MOST_TRIES = 100
ANSWERS = {200, 202, 409}
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
    """Schedule, cancel, move and kill for so many seconds, and on until all kills are done; let all settle; count."""
    books, started, story = Books(), time.monotonic(), Story(told=f"seed {plan.seed}\n")
    killer = Killer(kills=plan.kills, seconds=plan.seconds)
    with staged(play, folder=folder, again_after=plan.again_after) as stage, books.receiving(stage):
        stage.proxy.around = killer
        watching = threading.Event()
        threading.Thread(target=_watch, args=(books, killer, on_progress, watching), daemon=True).start()
        _Season(plan, stage, books, killer).pass_by()
        wait_until(lambda: not books.lost and is_ingested(stage))
        story.expect(stage.let_ticks_pass(books.last_due), "ticks have ended")
        watching.set()
        _close(story, stage, books, killer)
        story.expect(len(killer.done) == plan.kills, f"{len(killer.done)} of {plan.kills} kills were done")
        books.close(story, stage)
    story.figures["duration in s"] = round(time.monotonic() - started, 1)
    return story


class _Season:
    """Schedules jobs, takes some back, and moves some."""

    def __init__(self, plan: Plan, stage: Stage, books: Books, killer: Killer) -> None:
        self._plan, self._stage, self._books, self._killer = plan, stage, books, killer
        self._scattered = random.Random(plan.seed)
        self._wishes = Wishes(self._scattered, spread=plan.spread)
        self._callers = Callers(stage, self._scattered, ways=ways_of(stage, is_dead=killer.is_dead))
        self._queues = cycle(stage.endpoints.queues)
        self._timers: list[threading.Timer] = []

    def pass_by(self) -> None:
        """Schedule in calls spread over the time; then, however slow the machine, until there is enough of all."""
        plan = self._plan
        calls = max(2, round(plan.seconds / CALL_SECONDS), -(-plan.jobs // MOST_JOBS_OF_A_CALL))
        begun = time.monotonic()
        with ThreadPoolExecutor(LATER_LANES) as later:
            for number in range(calls):
                time.sleep(max(0.0, begun + number * plan.seconds / calls - time.monotonic()))
                self._call(plan.jobs // calls + (number < plan.jobs % calls), later)
            time.sleep(LATER_WITHIN_SECONDS)
            for further in count(1):
                if self._killer.is_done and self._is_enough():
                    break
                self._call(JOBS_OF_AN_EXTRA_CALL, later, further=further)
                time.sleep(CALL_SECONDS)
            for timer in self._timers:
                timer.join()

    def _is_enough(self) -> bool:
        cancels = list(self._books.cancels.values())
        moves = [move.status for move in list(self._books.moves.values())]
        return min(cancels.count(httpx.codes.OK), moves.count(httpx.codes.OK)) >= FEWEST_PROMISES

    def _call(self, jobs: int, later: ThreadPoolExecutor, *, further: float = 0) -> None:
        scheduled = self._callers.schedule(next(self._queues), self._wishes.some(jobs, further=further))
        for job in scheduled:
            self._books.enter(job)
        share = round(len(scheduled) * SHARE)
        some = self._scattered.sample([job.id for job in scheduled], 2 * share)
        for number, id in enumerate(some):
            moment = self._scattered.choice([0.0, self._scattered.uniform(0, LATER_WITHIN_SECONDS)])
            timer = threading.Timer(moment, later.submit, (self._cancel if number < share else self._move, id))
            self._timers.append(timer)
            timer.start()

    def _cancel(self, id: str) -> None:
        self._books.cancel(self._stage.http, id, tries=MOST_TRIES)

    def _move(self, id: str) -> None:
        """Move a job, to later, or to sooner than the fence, where ingest has a part in it; some callers give up."""
        delay = round(self._scattered.choice([self._scattered.uniform(*LATE), SOONEST_BY_THE_TABLE]), 3)
        self._books.reschedule(self._stage.http, id, delay, tries=self._scattered.choice([1, MOST_TRIES]))


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
    faults = unexplained_faults(stage.tick_faults, kills)
    story.expect(not faults, f"ticks failed that were not killed: {faults}")
    story.expect(set(books.statuses) <= ANSWERS | FAULTS, f"callers were told {dict(books.statuses)}")
    story.expect(not books.strangers, f"arrived though nobody was told of them: {sorted(books.strangers)}")
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


def unexplained_faults(faults: Iterable[BaseException], kills: Iterable[Kill]) -> list[str]:
    """Return the failed ticks for which there is neither a kill nor a request that the machine was too slow for.

    There may be more kills: the emulator fires the deployed schedules too, once a minute, and nobody hears of those.
    """
    told = not_slow(faults)
    deaths = [fault for fault in told if "Worker process died" in fault]
    others = [fault for fault in told if "Worker process died" not in fault]
    return others + deaths[sum(kill.function == TICK for kill in kills) :]
