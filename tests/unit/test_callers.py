"""Callers of the stories schedule a job again by what its error says that it went under: else there would be two."""

from collections.abc import Sequence

import pytest

from dueline import Job, NewJob, Route, State
from dueline.errors import DuelineError, Unavailable
from tests.builders import NOW
from tests.e2e.faults.callers import until_answered

ID = "emails.0.d.1795255290123.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"
TAKEN = Job(id=ID, queue="emails", due=NOW, route=Route.DIRECT, state=State.DISPATCHED)


@pytest.mark.parametrize(
    ("job", "error", "again"),
    [
        (NewJob(payload=1, at=NOW), {"job_id": ID}, NewJob(payload=1, id=ID)),
        (NewJob(payload=1, at=NOW), {"key": "its own"}, NewJob(payload=1, at=NOW, key="its own")),
        (NewJob(payload=1, at=NOW, key="ours"), {"job_id": ID}, NewJob(payload=1, at=NOW, key="ours")),
        (NewJob(payload=1, id=ID), {}, NewJob(payload=1, id=ID)),
    ],
)
def test_what_was_not_answered_is_scheduled_again_under_the_same_name(
    job: NewJob, error: dict[str, str], again: NewJob
) -> None:
    asked: list[NewJob] = []

    def schedule(queue: str, jobs: Sequence[NewJob]) -> list[Job | DuelineError]:
        asked.extend(jobs)
        lost = Unavailable("the answer was lost")
        lost.job_id, lost.key = error.get("job_id"), error.get("key")
        return [lost if len(asked) == 1 else TAKEN]

    assert until_answered(schedule, "emails", [job]) == [TAKEN]
    assert asked == [job, again]
