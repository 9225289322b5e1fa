"""A queue that was deleted while jobs for it were on their way."""

import pytest

from tests.e2e.faults.calm import JOBS, Calm

PROMPT_SECONDS = 3


@pytest.mark.parametrize("where", ["in the table", "in ingest", "late"])
def test_each_job_of_a_deleted_queue_is_parked_once_with_its_reason(calm: Calm, where: str) -> None:
    assert len(calm.doomed[where]) == JOBS
    for id in calm.doomed[where]:
        ((queue, reason),) = calm.found(id=id)
        assert queue == "dispatch"
        assert "NonExistentQueue" in reason


def test_a_caller_is_told_that_the_queue_is_gone(calm: Calm) -> None:
    assert calm.refusal.status_code == 404
    assert "deleted" in calm.refusal.json()["detail"]


def test_jobs_of_other_queues_are_on_time_and_come_once(calm: Calm) -> None:
    arrivals = [landed for landed in calm.books.landed if landed.id in calm.beside]
    assert sorted(landed.id for landed in arrivals) == sorted(calm.beside)
    assert len(calm.beside) == 2 * JOBS
    assert all(0 <= landed.lateness < PROMPT_SECONDS for landed in arrivals), calm.told
