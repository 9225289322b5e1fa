"""The predecessor, this release, the predecessor again, and this release again, under traffic and kills."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.faults.books import Books
from tests.e2e.faults.callers import Way, ways_of
from tests.e2e.faults.killing import Killer
from tests.e2e.faults.stage import Stage, is_ingested, staged
from tests.e2e.faults.story import Story
from tests.e2e.inbox import wait_until
from tests.e2e.upgrade.cargo import receiving
from tests.e2e.upgrade.closing import Journey, close
from tests.e2e.upgrade.earlier_producer import EarlierProducer
from tests.e2e.upgrade.reports import QUEUE, Reports
from tests.e2e.upgrade.switches import AFTER, BEFORE, Releases
from tests.e2e.upgrade.traffic import LEVELS, Traffic

ROUTE = (BEFORE, AFTER, BEFORE, AFTER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How long each release is deployed, in seconds, and how many processes are killed in all that time.

    Jobs that go by the table are due within `spread` seconds of each other: so many of them that others than those who
    wrote them hand them over.
    """

    seconds: float
    spread: float
    kills: int
    again_after: int
    seed: int


def upgrade(
    plan: Plan, releases: Releases, checkout: Path, folder: Path, *, on_release: Callable[[str], None] = lambda _: None
) -> Story:
    """Deploy both releases in turn, twice, while jobs are scheduled and processes killed; let all settle; count."""
    started, story = time.monotonic(), Story(told=f"seed {plan.seed}\n")
    with staged(releases.plays[BEFORE], folder=folder, again_after=plan.again_after) as stage, ExitStack() as stack:
        journey = _begun(plan, releases, stage, stack)
        with journey.reports.coming(), journey.traffic.flowing(_ways(journey, checkout, stack)):
            for number, release in enumerate(ROUTE):
                on_release(release)
                goes_on = not number or releases.switch(stage, release)
                story.expect(goes_on, f"not all ticks go on under {release}, deployment {number + 1}")
                time.sleep(plan.seconds)
            wait_until(lambda: journey.killer.is_done)
        on_release("settling")
        _settle(journey, story)
        close(story, journey)
    story.figures["duration in s"] = round(time.monotonic() - started, 1)
    return story


def _begun(plan: Plan, releases: Releases, stage: Stage, stack: ExitStack) -> Journey:
    """Receive whatever arrives, and let the kills begin."""
    books, reports = Books(), Reports(stage=stage, seed=plan.seed)
    stack.enter_context(receiving(stage, books, LEVELS))
    stack.enter_context(receiving(stage, reports.books, {QUEUE: 1}))
    traffic = Traffic(stage=stage, books=books, spread=plan.spread, later=plan.seconds, seed=plan.seed)
    stage.proxy.around = killer = Killer(kills=plan.kills, seconds=len(ROUTE) * plan.seconds)
    return Journey(stage=stage, releases=releases, traffic=traffic, reports=reports, killer=killer)


def _settle(journey: Journey, story: Story) -> None:
    """Wait until all has come, and ticks have read each partition after that."""
    wait_until(lambda: not journey.books.lost and is_ingested(journey.stage))
    journey.reports.settle()
    story.expect(journey.stage.let_ticks_pass(journey.books.last_due), "ticks have ended")


def _ways(journey: Journey, checkout: Path, stack: ExitStack) -> list[Way]:
    """Return how jobs are scheduled: over HTTP and directly, by this release's library and by its predecessor's."""
    stage, is_dead = journey.stage, journey.killer.is_dead
    name, endpoint = stage.deployment.name, stage.proxy.endpoint
    direct = EarlierProducer(checkout, name, endpoint=endpoint, is_dead=is_dead)
    http = EarlierProducer(checkout, name, endpoint=endpoint, url=stage.endpoints.api, is_dead=is_dead)
    for producer in (direct, http):
        stack.callback(producer.close)
    return [*ways_of(stage, is_dead=is_dead), (direct.schedule, True), (http.schedule, False)]
