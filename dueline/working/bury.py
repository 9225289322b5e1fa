"""Put a job that failed for good into its queue's dead-letter queue, with the reason."""

from dueline.errors import Unavailable
from dueline.message import ATTEMPTS, BATCH_BYTES, DISPENSABLE, ERROR, MAX_ATTRIBUTES, REASON, Message, printable
from dueline.ports import Queue
from dueline.working.received import Taken
from dueline.working.verdict import Dead


def bury(taken: Taken, dead: Dead, *, dead_letters: Queue) -> None:
    """Send a job to a dead-letter queue: to be done before its message is deleted.

    Raises QueueNotFound, Throttled or Unavailable: then it is to be done again.
    """
    refusals = dead_letters.send([failed(taken.claim.arrival.message, dead, attempt=taken.attempt)])
    if refusals:
        raise Unavailable(f"job {taken.id} could not be put into the dead-letter queue: {refusals[0].reason}")


def failed(message: Message, dead: Dead, *, attempt: int) -> Message:
    """Return a message as it goes into the dead-letter queue, with what there is room for of its failure."""
    why = {ERROR: dead.error, ATTEMPTS: str(attempt), REASON: printable(dead.reason) or "none was given"}
    # SQS refuses an empty value, which is what is left here of an attribute that is no text.
    own = [name for name, value in message.attributes.items() if value and name not in why]
    kept = sorted(own, key=lambda name: name in DISPENSABLE)[: MAX_ATTRIBUTES - len(why)]
    buried = Message(body=message.body, attributes={name: message.attributes[name] for name in kept})
    for name, value in why.items():
        fuller = Message(body=buried.body, attributes={**buried.attributes, name: value})
        buried = fuller if fuller.sent_bytes <= BATCH_BYTES else buried
    return buried
