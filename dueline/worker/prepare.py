"""Sort received messages before any handler runs: which may run, and which are cancelled or cannot be read."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from dueline.errors import InvalidJob
from dueline.model.job import JobId
from dueline.skip import cancelled_among
from dueline.worker.claim import Claim
from dueline.worker.dead_letter import DeadLetter
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import ReceivedMessage
from dueline.worker.verdict import Dead


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A batch, sorted: the messages that are ready to run, those that were cancelled, those that can never run."""

    ready: list[ReceivedMessage]
    cancelled: list[ReceivedMessage]
    dead: list[DeadLetter]


def prepare(
    claims: Sequence[Claim], connection: QueueConnection, *, look: Callable[..., Collection[JobId]] = cancelled_among
) -> Prepared:
    """Sort a received batch; `look` returns which of its jobs were cancelled, in one request for up to 100.

    Raises Throttled or Unavailable, as `look` does: then none may run, and all are to be prepared again.
    """
    # Counted from before the request.
    cancellation_read = connection.clock.monotonic()
    readable, dead = [], []
    for claim in claims:
        try:
            readable.append(ReceivedMessage.of(claim, queue=connection.queue, cancellation_read=cancellation_read))
        except InvalidJob as error:
            unreadable = ReceivedMessage.without_job(claim, queue=connection.queue)
            dead.append(DeadLetter(received=unreadable, dead=Dead(error=type(error).__name__, reason=str(error))))
    ids = {each.job_id for each in readable if each.job_id}
    cancelled = look(ids, table=connection.table) if ids else set()
    return Prepared(
        ready=[each for each in readable if each.job_id not in cancelled],
        cancelled=[each for each in readable if each.job_id in cancelled],
        dead=dead,
    )


def seconds_until_due(received: ReceivedMessage, connection: QueueConnection) -> float:
    """Return how many seconds a worker must hold a job back: 0 unless its queue is precise.

    SQS delivers the jobs of a precise queue up to a second early, and holds back those of other queues itself.
    """
    if not connection.settings.queue.precise:
        return 0.0
    return max(0.0, (received.due - connection.clock.now()).total_seconds())
