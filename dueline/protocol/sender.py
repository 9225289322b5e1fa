"""Sender: send submitted jobs in batches, each to its own queue or to the inbound queue."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, groupby

from dueline.errors import RETRYABLE, DuelineError, InvalidJob, QueueNotFound, Unavailable
from dueline.model.job import Job, JobId, Route
from dueline.model.message import ATTRIBUTES_BYTES, Message, batches
from dueline.model.queue_settings import QueueSettings, not_there
from dueline.model.routing import whole_seconds
from dueline.ports import Clock, Queue, Refusal, Spread
from dueline.protocol.submission import Submission, out_of_time


class Sender:
    """Sends jobs of one queue, as many as fit into each message batch.

    `level` returns the queue's SQS queue of a priority, `inbound` is the way into the table.
    """

    def __init__(
        self, queue: QueueSettings, *, level: Callable[[int], Queue], inbound: Queue, clock: Clock, spread: Spread = map
    ) -> None:
        self._queue = queue
        self._level = level
        self._inbound = inbound
        self._clock = clock
        self._spread = spread

    def send(self, submissions: Iterable[Submission], *, until: float) -> dict[JobId, DuelineError]:
        """Send each job; return the error of each that was not sent. Begins no send after `until` (monotonic)."""
        waiting = list(submissions)
        return dict(chain.from_iterable(self._send_by(route, waiting, until=until) for route in Route))

    def _send_by(
        self, route: Route, submissions: Iterable[Submission], *, until: float
    ) -> Iterable[tuple[JobId, DuelineError]]:
        """Send the jobs of one route, several batches at once; return the error of each job that was not sent."""
        chosen = sorted((each for each in submissions if each.job.id.route is route), key=_level_of)
        levels = (some for _, some in groupby(chosen, key=_level_of))
        cut = (batches(some, size=lambda each: each.job.size + ATTRIBUTES_BYTES) for some in levels)
        return chain.from_iterable(self._spread(partial(self._send_batch, until=until), chain.from_iterable(cut)))

    def _send_batch(self, batch: Sequence[Submission], *, until: float) -> list[tuple[JobId, DuelineError]]:
        ids = [each.job.id for each in batch]
        if self._clock.monotonic() >= until:
            return [(id, out_of_time(id)) for id in ids]
        now = self._clock.now()
        try:
            refusals = self._queue_of(batch[0].job).send([self._message(each, now=now) for each in batch])
        except QueueNotFound as error:
            return [(each.job.id, self._gone(each.job, error)) for each in batch]
        except RETRYABLE as error:
            return [(id, error.copy(job_id=str(id))) for id in ids]
        return [(ids[refusal.index], _refused(refusal).copy(job_id=str(ids[refusal.index]))) for refusal in refusals]

    def _queue_of(self, job: Job) -> Queue:
        return self._level(job.priority) if job.id.route is Route.DIRECT else self._inbound

    def _gone(self, job: Job, error: QueueNotFound) -> DuelineError:
        """Return the error for a missing SQS queue: only a queue's own may be missing for good."""
        if job.id.route is Route.TABLE:
            return Unavailable(str(error)).copy(job_id=str(job.id))
        return not_there(self._queue, priority=job.priority)

    def _message(self, submission: Submission, *, now: datetime) -> Message:
        job = submission.job
        if job.id.route is Route.TABLE:
            return Message.of(job, group=job.id.queue)
        left = (job.id.due - now).total_seconds() if submission.delay is None else submission.delay
        return Message.of(job, delay=whole_seconds(left, precise=self._queue.precise), group=job.tenant)


def _level_of(submission: Submission) -> int:
    """Return the priority whose SQS queue a job is sent to; 0 is the inbound queue, for jobs on the table's route."""
    return submission.job.priority if submission.job.id.route is Route.DIRECT else 0


def _refused(refusal: Refusal) -> DuelineError:
    return InvalidJob(refusal.reason) if refusal.final else Unavailable(refusal.reason)
