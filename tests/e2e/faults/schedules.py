"""Schedules that are changed while those who plan, change and send are killed, throttled, and do not come.

Each runs every 60 s, at a second of the minute of its own: so runs fall due all the time.
"""

import random
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dueline.model.queue_settings import PLANNER as OWN_QUEUE
from local.summary import percentile
from local.ticks import not_slow
from tests.e2e.faults import repeats
from tests.e2e.faults.books import FAULTS, Books
from tests.e2e.faults.changing import ACTS, Changing, Schedule
from tests.e2e.faults.exchange import straight
from tests.e2e.faults.heads import dead, heads_of, parked_planning_jobs
from tests.e2e.faults.killing import PLANNER, STEPS_OF_SCHEDULES, Killer
from tests.e2e.faults.runs import Runs, Span, spans_of, untrue
from tests.e2e.faults.stage import Play, Stage, dead_letters, described, staged
from tests.e2e.faults.story import Story
from tests.e2e.faults.weather import Losing, Weather
from tests.e2e.inbox import HANG_SECONDS, wait_until

QUEUES = ("emails", "invoices")
LANES = 3
# Deployed, SQS brings a planning job again 3 minutes after its planner was killed.
AGAIN_AFTER_SECONDS = 6
# One in so many is never changed: its chain goes on from step to step.
STEADY_ONE_IN = 5
ANSWERS = {200, 201, 404, 412}
ALLOWED_FAULTS = ("ProvisionedThroughputExceeded", "Worker process died")
# Its first planning job is lost: it stands still until the planner's watch finds it.
STILL = Schedule(queue="emails", name="still")
_TOLD_STILL = re.compile(r'"StandingStill":\[?([\d.]+)')


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much of it there is to be.

    For `seconds` schedules are changed and processes killed; for `tail` seconds after the last change what is then runs
    on. Rules that are put run first in from so many to so many seconds, their `lead`.
    """

    schedules: int
    changes: int
    kills: int
    seconds: float
    lead: tuple[float, float]
    tail: float
    seed: int


def keep_to_schedules(plan: Plan, play: Play, folder: Path) -> Story:
    """Change schedules and kill, lose a planning job and have the planner watch; hold what came against the rules."""
    books, began, story = Books(), time.monotonic(), Story(told=f"seed {plan.seed}\n")
    with staged(play, folder=folder, again_after=AGAIN_AFTER_SECONDS) as stage:
        with books.receiving(stage, queues=list(QUEUES)):
            _let_planning_jobs_come_again(stage)
            season = _Season(plan, stage, books)
            season.pass_by()
            _expect_of_the_watch(story, stage)
            until = _last_change(stage) + timedelta(seconds=plan.tail)
            wait_until(lambda: datetime.now(UTC) > until)
            wait_until(lambda: not season.runs().missing(until), every=0.5)
            story.expect(stage.let_ticks_pass(until), "ticks have ended")
            wait_until(lambda: not dead(stage, QUEUES, until), every=0.5)
        _close(story, stage, season, books, until)
    story.figures["duration in s"] = round(time.monotonic() - began, 1)
    return story


class _Season:
    """The time in which schedules are changed, and processes killed."""

    def __init__(self, plan: Plan, stage: Stage, books: Books) -> None:
        self._plan, self._stage, self._books = plan, stage, books
        self._scattered = random.Random(plan.seed)
        self.changing = Changing(books, stage.http, self._scattered)
        self.losing = Losing(schedule=STILL.name)
        self.schedules = [Schedule(queue=QUEUES[n % len(QUEUES)], name=f"s{n}") for n in range(plan.schedules)]

    def pass_by(self) -> None:
        """Put all schedules, then change them until there was enough of everything."""
        plan, self._stage.proxy.around = self._plan, self.losing
        self.changing.put(STILL, lead=max(plan.lead))
        assert wait_until(lambda: self.losing.lost > 0), "nobody sends the planning job that is to be lost"
        self.weather = Weather(seconds=plan.seconds)
        self.killer = Killer(
            kills=plan.kills, seconds=plan.seconds, steps=STEPS_OF_SCHEDULES, beside=self.weather, first_after={}
        )
        self.losing.around, self._ends = self.killer, time.monotonic() + plan.seconds
        with ThreadPoolExecutor(LANES) as lanes:
            list(lanes.map(self._put, self.schedules))
            list(lanes.map(lambda _: self._change(), range(LANES)))
        self.losing.around = straight

    def _put(self, schedule: Schedule) -> None:
        self.changing.put(schedule, lead=self._scattered.uniform(*self._plan.lead))

    def _change(self) -> None:
        plan, changed = self._plan, self.schedules[len(self.schedules) // STEADY_ONE_IN :]
        pause = LANES * plan.seconds / plan.changes
        while time.monotonic() < self._ends + (0 if self._is_enough() else HANG_SECONDS):
            self.changing.change_some(changed, lead=plan.lead)
            time.sleep(self._scattered.uniform(0, 2 * pause))

    def _is_enough(self) -> bool:
        told = list(self.changing.told)
        has_changes = len(told) >= len(self.schedules) + self._plan.changes and {each.act for each in told} >= ACTS
        return has_changes and self.weather.is_over and self.killer.is_done

    def spans(self) -> dict[Schedule, list[Span]]:
        return {schedule: spans_of(head) for schedule, head in heads_of(self._stage, QUEUES).items()}

    def runs(self) -> Runs:
        return Runs(spans=self.spans(), versions=self.changing.versions, landed=list(self._books.landed))


def _let_planning_jobs_come_again(stage: Stage) -> None:
    sqs = stage.emulator.client("sqs")
    url = sqs.get_queue_url(QueueName=stage.deployment.names.queue(OWN_QUEUE.name))["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(AGAIN_AFTER_SECONDS)})


def _last_change(stage: Stage) -> datetime:
    return max(datetime.now(UTC), *(head.start for head in heads_of(stage, QUEUES).values()))


def _expect_of_the_watch(story: Story, stage: Stage) -> None:
    """See that the schedule whose planning job was lost stands still until the planner watches, as it does hourly."""
    still, stage.proxy.around = heads_of(stage, QUEUES)[STILL], straight
    story.expect(still.planned_to == still.start, f"{STILL.path} went on though its planning job was lost")
    functions, name = stage.emulator.client("lambda"), stage.deployment.names.function(PLANNER)
    answer = functions.invoke(FunctionName=name, Payload=b'{"watch": true}')
    story.expect("FunctionError" not in answer, f"the watch failed: {answer['Payload'].read()}")

    def told() -> list[float]:
        return [float(figure) for line in stage.log_lines("StandingStill") for figure in _TOLD_STILL.findall(line)]

    story.expect(wait_until(lambda: max(told(), default=0) >= 1), "no metric says that a schedule stood still")
    goes_on = wait_until(lambda: heads_of(stage, QUEUES)[STILL].planned_to > still.planned_to)
    story.expect(goes_on, f"{STILL.path} still stands still after the watch")


def _close(story: Story, stage: Stage, season: _Season, books: Books, until: datetime) -> None:
    spans, runs, killer, changing = season.spans(), season.runs(), season.killer, season.changing
    story.complaints += runs.complaints(until)
    false = untrue(changing.told, spans, changing.versions)
    story.expect(not false, f"told, but not so: {len(false)}, {false[:3]}")
    died = dead(stage, QUEUES, until)
    story.expect(not died, f"a schedule does not die: {died}")
    causes = repeats.causes_of(books, list(stage.proxy.records), killer.done)
    riddles = [id for id, found in causes.items() if repeats.UNEXPLAINED in found]
    story.expect(not riddles, f"{len(riddles)} runs came more than once for no cause")
    story.told += "\n\n".join(map(stage.story_of, riddles[:3]))
    story.expect(killer.is_done, f"{len(killer.done)} kills were done")
    others = not_slow(stage.tick_faults, *ALLOWED_FAULTS)
    story.expect(not others, f"ticks failed of something else: {others}")
    story.expect(set(books.statuses) <= ANSWERS | FAULTS, f"callers were told {dict(books.statuses)}")
    _expect_no_dead_letters(story, stage)
    story.figures = _figures(season, books, runs.expected(until), causes)


def _expect_no_dead_letters(story: Story, stage: Stage) -> None:
    steps = parked_planning_jobs(stage)
    letters = dead_letters(stage)
    story.expect(not letters and not steps, f"parked: {described(letters)}, {len(steps)} planning jobs")


def _figures(
    season: _Season, books: Books, expected: set[tuple[Schedule, datetime]], causes: dict[str, list[str]]
) -> dict[str, object]:
    spans, lateness = season.spans(), books.lateness() or [0.0]
    return {
        "schedules": len(spans),
        "generations": sum(map(len, spans.values())),
        "changes answered": dict(Counter(told.act for told in season.changing.told)),
        "answers": dict(books.statuses),
        "kills by step": dict(sorted(Counter(map(str, season.killer.done)).items())),
        "requests throttled": dict(season.weather.throttled),
        "runs that had to come": len(expected),
        "runs that came": len(books.times),
        "repeats by cause": dict(Counter(cause for found in causes.values() for cause in found)),
        "lateness in s": {f"p{percent}": round(percentile(lateness, percent), 3) for percent in (50, 95, 100)},
    }
