"""Look at a received batch before any handler runs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from dueline.errors import InvalidJob
from dueline.model.job import JobId
from dueline.skip import cancelled_among
from dueline.worker.claim import Claim
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import Taken
from dueline.worker.verdict import Dead


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A batch, sorted: what is to run, what was cancelled, and what can never run."""

    ready: list[Taken]
    cancelled: list[Taken]
    dead: list[tuple[Taken, Dead]]


def prepare(
    claims: Sequence[Claim], connection: QueueConnection, *, look: Callable[..., Collection[JobId]] = cancelled_among
) -> Prepared:
    """Sort a received batch; `look` tells which of its jobs were cancelled, in one request for up to 100.

    Raises Throttled or Unavailable, as `look` does: then nothing is known of any, and they are to be received again.
    """
    # Counted from before the request.
    looked = connection.clock.monotonic()
    taken, dead = [], []
    for claim in claims:
        try:
            taken.append(Taken.of(claim, queue=connection.queue, looked=looked))
        except InvalidJob as error:
            no_job = Taken.of_others(claim, queue=connection.queue)
            dead.append((no_job, Dead(error=type(error).__name__, reason=str(error))))
    ids = {each.job_id for each in taken if each.job_id}
    cancelled = look(ids, table=connection.table) if ids else set()
    return Prepared(
        ready=[each for each in taken if each.job_id not in cancelled],
        cancelled=[each for each in taken if each.job_id in cancelled],
        dead=dead,
    )


def seconds_until_due(taken: Taken, connection: QueueConnection) -> float:
    """Return how long a job is to be held back: 0 unless its queue rounds delays down.

    SQS itself holds back those of the other queues.
    """
    if not connection.settings.queue.precise:
        return 0.0
    return max(0.0, (taken.due - connection.clock.now()).total_seconds())
