"""Tables that throttle.

First both do, every request, from before ticks could hand jobs over until these are overdue. Then the table of jobs
alone, whatever writes to it, as in a flood: ticks, whose states are in the other one, hand over all that waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from dueline import State
from dueline.model import instant
from local.ticks import not_slow
from tests.e2e.faults.books import Books
from tests.e2e.faults.exchange import Record, straight
from tests.e2e.faults.killing import API, INGEST, TICK
from tests.e2e.faults.letters import id_of
from tests.e2e.faults.mishaps import writes_of_jobs_throttled
from tests.e2e.faults.repeats import Turns
from tests.e2e.faults.stage import Play, Stage, dead_letters, described, staged
from tests.e2e.faults.story import Story
from tests.e2e.faults.waiting import wait_in_the_table
from tests.e2e.inbox import wait_until

# Ticks hand jobs over 19 s before they are due, and ingest takes its time before that.
FIRST_DUE = timedelta(seconds=29)
SOONEST_BY_THE_TABLE = timedelta(seconds=25)
SPREAD = timedelta(seconds=3)
DIRECT = 6
AGAIN_AFTER_SECONDS = 8
ALLOWED_FAULT = "ProvisionedThroughputExceeded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How many jobs wait in the table, and how many are scheduled by it in each of its two states."""

    jobs: int


def live_through_a_drought(plan: Plan, play: Play, folder: Path) -> Story:
    """Let jobs fall due while both tables throttle, then have the jobs table take no writes; see all arrive.

    Meanwhile callers schedule and cancel.
    """
    books, story = Books(), Story()
    with staged(play, folder=folder, again_after=AGAIN_AFTER_SECONDS) as stage, books.receiving(stage):
        waiting = wait_in_the_table(
            stage, lambda lead: _schedule(stage, books, datetime.now(UTC) + lead, plan.jobs), lead=FIRST_DUE
        )
        direct = books.schedule(stage.http, "emails", [{"payload": 1, "delay": n} for n in range(DIRECT)])
        meanwhile = _schedule(stage, books, datetime.now(UTC) + SOONEST_BY_THE_TABLE, plan.jobs)
        refusals = [stage.http.delete(f"/queues/emails/jobs/{waiting[0]}")]
        _wait_until_overdue(stage, books, waiting, direct)
        flooded, stage.proxy.around = datetime.now(UTC), writes_of_jobs_throttled
        meanwhile += _submit_late(stage, books, plan.jobs)
        refusals.append(stage.http.delete(f"/queues/emails/jobs/{waiting[0]}"))
        story.expect(wait_until(lambda: set(waiting) <= books.times.keys()), "ticks need to write the jobs table")
        ended, stage.proxy.around = datetime.now(UTC), straight
        wait_until(lambda: not books.lost)
        _expect_of_the_drought(story, books, flooded, waiting=waiting, direct=direct)
        _expect_of_callers(story, books, refusals, 2 * plan.jobs, meanwhile)
        _expect_of_ticks(story, stage, waiting, flooded, ended)
        books.close(story, stage)
    return story


def _wait_until_overdue(stage: Stage, books: Books, waiting: Sequence[str], direct: Sequence[str]) -> None:
    last = max(books.accepted[id].due for id in waiting)

    def is_dry_enough() -> bool:
        return datetime.now(UTC) > last and bool(stage.tick_faults) and set(direct) <= books.times.keys()

    assert wait_until(is_dry_enough), "direct jobs do not arrive, or no tick fails, while the table throttles"


def _schedule(stage: Stage, books: Books, first: datetime, jobs: int) -> list[str]:
    dues = [first + SPREAD * n / jobs for n in range(jobs)]
    return books.schedule(stage.http, "emails", [{"payload": 1, "at": instant.text(due)} for due in dues])


def _submit_late(stage: Stage, books: Books, jobs: int) -> list[str]:
    """Schedule jobs by the table that are due soon, by ids of their caller's, the first one alone."""
    due = datetime.now(UTC) + SPREAD
    wishes = [{"payload": 1, "id": id_of(due=due)} for _ in range(jobs)]
    return [id for some in (wishes[:1], wishes[1:]) for id in books.schedule(stage.http, "emails", some)]


def _expect_of_the_drought(
    story: Story, books: Books, flooded: datetime, *, waiting: Sequence[str], direct: Sequence[str]
) -> None:
    story.expect(
        all(books.first_arrival(id) > flooded for id in waiting if id in books.times), "the table was not dry enough"
    )
    story.expect(
        all(books.first_arrival(id) < flooded for id in direct if id in books.times), "the direct route needs the table"
    )


def _expect_of_callers(
    story: Story, books: Books, refusals: list[httpx.Response], jobs: int, meanwhile: list[str]
) -> None:
    told = {(books.accepted[id].route, books.accepted[id].state) for id in meanwhile}
    story.expect(len(meanwhile) == jobs, f"of {jobs} jobs, {len(meanwhile)} were taken while the table throttled")
    story.expect(told == {("table", State.ACCEPTED)}, f"jobs that the buffer took are told as {told}")
    for refusal in refusals:
        story.expect(
            refusal.status_code == httpx.codes.TOO_MANY_REQUESTS and refusal.headers["retry-after"],
            f"a cancel that cannot be written is told {refusal.status_code} {dict(refusal.headers)}",
        )


def _expect_of_ticks(story: Story, stage: Stage, waiting: Sequence[str], flooded: datetime, ended: datetime) -> None:
    """The first tick that nothing hinders hands over all that waits: it needs not write the table of jobs."""
    records = [record for record in list(stage.proxy.records) if record.at > flooded.timestamp()]
    left = [id for id in waiting if not _is_sent_by_the_first_unhindered_tick(id, records)]
    story.expect(not left, f"ticks after the drought left {len(left)} jobs to later ones")
    in_flood = [record for record in records if record.at < ended.timestamp() and record.mishap]
    hindered = [record for record in in_flood if record.function == TICK]
    story.expect(not hindered, f"ticks wrote the table of jobs: {hindered[:3]}")
    met = {record.function for record in in_flood}
    story.expect(met == {API, INGEST}, f"of the flood, {met} noticed")
    others = set(not_slow(stage.tick_faults, ALLOWED_FAULT))
    story.expect(not others, f"ticks failed of something else: {others}")
    letters = dead_letters(stage)
    story.expect(not letters, f"parked: {described(letters)}")
    story.figures["ticks that failed"] = len(stage.tick_faults)


def _is_sent_by_the_first_unhindered_tick(id: str, records: Sequence[Record]) -> bool:
    queue, partition, *_, uid = id.split(".")
    turns, delivered = Turns(records=records), set[str]()
    for record in records:
        delivered |= set(record.delivered)
        change = record.state
        gives_back = change and change.partition == f"{queue}#{partition}" and change.cursor and not change.lease
        if gives_back and turns.has_taken(record.turn) and not turns.fell_short(record.turn):
            return uid in delivered
    return uid in delivered
