"""Write-through: submit jobs by the table's route, with the inbound queue behind it as a buffer.

What the table throttles or leaves unanswered goes into the inbound queue under the same id, and ingest does all of it
again: rows are equal, so whatever was done before does no harm.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from typing import Self

from dueline.errors import DuelineError, IdReused, Unavailable
from dueline.model.job import Job, JobId, State
from dueline.protocol.breaker import Breaker
from dueline.protocol.submission import Submission
from dueline.protocol.table_route import TableRoute, Taken

# What sends to the inbound queue; returns the error of each job that was not sent.
Buffer = Callable[[Sequence[Submission]], dict[JobId, DuelineError]]


@dataclass(frozen=True, kw_only=True, slots=True)
class NotInTable(Job):
    """A submitted job that does not wait in the table.

    It is ACCEPTED in the inbound queue, or the late path has DISPATCHED or PARKED it.
    """

    state: State

    __hash__ = Job.__hash__

    @classmethod
    def of(cls, job: Job, state: State) -> Self:
        return cls(**{each.name: getattr(job, each.name) for each in fields(Job)}, state=state)


@dataclass(kw_only=True, slots=True)
class Written:
    """What became of jobs: the errors of those that are not submitted, and those that are not in the table."""

    errors: dict[JobId, DuelineError] = field(default_factory=dict)
    elsewhere: dict[JobId, NotInTable] = field(default_factory=dict)


class WriteThrough:
    """Submits jobs of one queue by the table's route. `breaker` is the queue's, of this process."""

    def __init__(self, route: TableRoute, *, breaker: Breaker) -> None:
        self._route = route
        self._breaker = breaker

    def submit(self, submissions: Collection[Submission], *, buffer: Buffer | None, until: float) -> Written:
        """Write each job and see to it that it is sent, or put it into the buffer; begin no send after `until`.

        Without a buffer, what the table did not take has the table's error.
        """
        by_job = {each.job: each for each in submissions}
        if not by_job:
            return Written()
        if buffer is not None and self._breaker.is_open:
            return _buffered(list(by_job.values()), buffer)
        taken = self._take(list(by_job), until=until)
        if taken.undone:
            self._breaker.trip()
        left = [submission for job, submission in by_job.items() if job in taken.undone]
        written = _refused(left, taken) if buffer is None else _buffered(left, buffer)
        return _add_what_was_taken(written, taken)

    def _take(self, jobs: Sequence[Job], *, until: float) -> Taken:
        return self._route.take(jobs, until=until) if len(jobs) > 1 else self._route.take_first(jobs[0], until=until)


def _buffered(left: Sequence[Submission], buffer: Buffer) -> Written:
    errors = buffer(left)
    elsewhere = {each.job.id: NotInTable.of(each.job, State.ACCEPTED) for each in left if each.job.id not in errors}
    return Written(errors=errors, elsewhere=elsewhere)


def _refused(left: Sequence[Submission], taken: Taken) -> Written:
    error = taken.cause or Unavailable("; ".join(sorted(taken.faults)) or "the table did not take it")
    return Written(errors={each.job.id: error.copy(job_id=str(each.job.id)) for each in left})


def _add_what_was_taken(written: Written, taken: Taken) -> Written:
    for job in taken.reused:
        reason = f"id is {str(job.id)!r}: it belongs to a job with another payload, tenant or priority"
        written.errors[job.id] = IdReused(reason)
    for job in taken.late:
        written.elsewhere[job.id] = NotInTable.of(job, State.DISPATCHED)
    for parked in taken.parked:
        written.elsewhere[parked.job.id] = NotInTable.of(parked.job, State.PARKED)
    return written
