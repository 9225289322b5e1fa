"""Put a job that failed for good into its queue's dead-letter queue, with the reason."""

from dataclasses import dataclass

from dueline.errors import Unavailable
from dueline.model.message import ATTEMPTS, ERROR, REASON, Message
from dueline.ports import Queue
from dueline.worker.received import Taken
from dueline.worker.verdict import Dead


@dataclass(frozen=True, kw_only=True, slots=True)
class Burial:
    """A job that is to go into the dead-letter queue, and why: its handler runs no more."""

    taken: Taken
    dead: Dead


def bury(taken: Taken, dead: Dead, *, dead_letters: Queue) -> None:
    """Send a job to a dead-letter queue: to be done before its message is deleted.

    Raises QueueNotFound, Throttled or Unavailable: then it is to be done again.
    """
    refusals = dead_letters.send([failed(taken.claim.arrival.message, dead, attempt=taken.attempt)])
    if refusals:
        raise Unavailable(f"job {taken.id} could not be put into the dead-letter queue: {refusals[0].reason}")


def failed(message: Message, dead: Dead, *, attempt: int) -> Message:
    """Return a message as it goes into the dead-letter queue, with what there is room for of its failure."""
    # SQS refuses an empty value.
    return message.telling(
        {ERROR: dead.error or "Error", ATTEMPTS: str(attempt), REASON: dead.reason or "none was given"}
    )
