"""Put a job that failed for good into its queue's dead-letter queue, with the reason."""

from dataclasses import dataclass

from dueline.errors import Unavailable
from dueline.model.message import ATTEMPTS, ERROR, REASON, Message
from dueline.ports import Queue
from dueline.worker.received import ReceivedMessage
from dueline.worker.verdict import Dead


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A message that goes into the dead-letter queue, and why: its handler does not run again."""

    received: ReceivedMessage
    dead: Dead

    def send(self, dead_letters: Queue) -> None:
        """Send it to a dead-letter queue. Its message is to be deleted only after that.

        Raises QueueNotFound, Throttled or Unavailable: then it must be sent again.
        """
        received = self.received
        refusals = dead_letters.send(
            [with_failure(received.claim.arrival.message, self.dead, attempt=received.attempt)]
        )
        if refusals:
            raise Unavailable(f"job {received.id} could not be put into the dead-letter queue: {refusals[0].reason}")


def with_failure(message: Message, dead: Dead, *, attempt: int) -> Message:
    """Return a message as it goes into the dead-letter queue: with as much of its failure as there is room for."""
    # SQS refuses an empty value.
    return message.telling(
        {ERROR: dead.error or "Error", ATTEMPTS: str(attempt), REASON: dead.reason or "none was given"}
    )
