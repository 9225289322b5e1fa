"""Promises that hold though the table throttles every request for longer than ticks look ahead."""

import httpx
import pytest

from tests.e2e.faults.drought import AGAIN_AFTER_SECONDS, JOBS, Dried
from tests.e2e.faults.stage import described

PROMPT_SECONDS = 5


def after_they_could(dried: Dried, ids: list[str]) -> list[float]:
    """Return how many seconds after it was due and the table was back each job first arrived."""
    could = {id: max(dried.books.accepted[id].due, dried.ended) for id in ids}
    return [(dried.books.first_arrival(id) - could[id]).total_seconds() for id in ids]


@pytest.mark.parametrize("promise", ["lost", "early"])
def test_no_job_is_lost_or_early_though_the_table_throttles(dried: Dried, promise: str) -> None:
    assert len(dried.books.accepted) == 2 * JOBS + len(dried.direct)
    assert not getattr(dried.books, promise), dried.told


def test_jobs_due_while_the_table_throttles_arrive_as_soon_as_it_does_not(dried: Dried) -> None:
    due_meanwhile = [id for id in dried.waiting if dried.books.accepted[id].due < dried.ended]
    assert len(due_meanwhile) >= JOBS / 4
    assert min(dried.books.first_arrival(id) for id in due_meanwhile) > dried.ended, "the table was not dry enough"
    assert max(after_they_could(dried, dried.waiting)) < PROMPT_SECONDS, dried.told


def test_jobs_scheduled_while_the_table_throttles_are_accepted_and_arrive(dried: Dried) -> None:
    assert len(dried.meanwhile) == JOBS
    assert {dried.books.accepted[id].route for id in dried.meanwhile} == {"table"}
    assert max(after_they_could(dried, dried.meanwhile)) < AGAIN_AFTER_SECONDS + PROMPT_SECONDS, dried.told


def test_the_direct_route_needs_no_table(dried: Dried) -> None:
    assert max(dried.books.first_arrival(id) for id in dried.direct) < dried.ended, dried.told


def test_a_cancel_that_cannot_be_written_is_told_to_be_tried_again(dried: Dried) -> None:
    assert dried.refusal.status_code == httpx.codes.TOO_MANY_REQUESTS
    assert dried.refusal.headers["retry-after"]


def test_nothing_is_parked_and_ticks_fail_of_nothing_else(dried: Dried) -> None:
    assert not dried.letters, described(dried.letters)
    assert dried.tick_faults
    assert {fault for fault in dried.tick_faults if "ProvisionedThroughputExceeded" not in fault} == set()
