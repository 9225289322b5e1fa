"""Jobs through a storm: every mishap at once, on every way between the functions and AWS."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import straight
from tests.e2e.faults.mishaps import KINDS, Storm
from tests.e2e.faults.stage import Play, Stage, dead_letters, described, staged
from tests.e2e.faults.story import Story
from tests.e2e.inbox import wait_until

JOBS_OF_A_CALL = (1, 5, 1, 3)
LANES = 4
# Some callers give up after the first fault: their jobs may come or not.
TRIES = (1, 9)
SOON = (0, 10)
BY_THE_TABLE = (25, 29)
CANCELLED_SHARE = 0.15
FEWEST_OF_A_KIND = 3
AGAIN_AFTER_SECONDS = 8
# What a caller is told: done, or that it may try again.
ANSWERS = {200, 201, 202, 429, 503}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How many jobs are to be accepted in the storm, at least."""

    jobs: int
    seed: int


def weather_a_storm(plan: Plan, play: Play, folder: Path) -> Story:
    """Schedule and cancel in a storm, until there was enough of everything and half of the jobs have arrived in it."""
    books, storm, story = Books(), Storm(seed=plan.seed), Story()
    with staged(play, folder=folder, again_after=AGAIN_AFTER_SECONDS) as stage, books.receiving(stage):
        stage.proxy.around = storm
        _schedule_and_cancel(plan, stage, books, storm)
        arrived = wait_until(lambda: len(books.lost) < len(books.promised) / 2)
        story.expect(arrived, "half of the jobs did not arrive in the storm")
        stage.proxy.around = straight
        wait_until(lambda: not books.lost)
        story.expect(stage.let_ticks_pass(books.last_due), "ticks have ended")
        letters = dead_letters(stage)
        story.expect(not letters, f"parked for a fault that passes: {described(letters)}")
        told = set(books.statuses)
        story.expect(told <= ANSWERS, f"callers were told {dict(books.statuses)}, more than {ANSWERS}")
        story.told = f"seed {plan.seed}\n"
        books.close(story, stage)
    story.figures |= {"answers": dict(books.statuses), "mishaps": dict(storm.befell)}
    return story


def _schedule_and_cancel(plan: Plan, stage: Stage, books: Books, storm: Storm) -> None:
    """Schedule calls of jobs, and take a share of them back, until there is enough of everything."""
    scattered = random.Random(plan.seed)
    sizes, queues = itertools.cycle(JOBS_OF_A_CALL), itertools.cycle(("emails", "invoices"))
    laters = itertools.count()

    def call(_: int) -> None:
        # On a slow machine jobs are scheduled ever further ahead, until a cancel comes in time to be a promise.
        later = next(laters) if len(books.promised) >= plan.jobs else 0
        wishes = [_wish(scattered, later) for _ in range(next(sizes))]
        ids = books.schedule(stage.http, next(queues), wishes, tries=scattered.choice(TRIES))
        for id in ids:
            if scattered.random() < CANCELLED_SHARE:
                books.cancel(stage.http, id)

    def is_enough() -> bool:
        has_answers = {httpx.codes.OK, httpx.codes.ACCEPTED} <= set(books.cancels.values())
        has_mishaps = all(storm.befell[kind] >= FEWEST_OF_A_KIND for kind in KINDS)
        return len(books.promised) >= plan.jobs and has_answers and has_mishaps

    with ThreadPoolExecutor(LANES) as lanes:
        wait_until(lambda: bool(list(lanes.map(call, range(LANES)))) and is_enough(), every=0)


def _wish(scattered: random.Random, later: float) -> dict[str, Any]:
    soonest, latest = scattered.choice((SOON, BY_THE_TABLE))
    later = later if soonest else 0
    return {"payload": {"n": 1}, "delay": round(scattered.uniform(soonest + later, latest + later), 3)}
