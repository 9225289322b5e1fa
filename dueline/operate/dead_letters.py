"""Dead letters: why each failed, which ones a redrive selects, and the message that is put back."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.errors import InvalidJob, JobNotFound
from dueline.model import instant
from dueline.model.folding import unfolded
from dueline.model.job import JobId
from dueline.model.message import AGAIN, ATTEMPTS, ERROR, EXPIRES, ID, PRIORITY, REASON, Message
from dueline.ports import Arrival

# The error of a job that SQS itself moved, after the last receive that it allows.
BY_SQS = "ReceivedTooOften"
# The error of a once-only job whose earlier attempt ended without a word.
INTERRUPTED = "Interrupted"
LONGER = timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class PutBack:
    """A message as it is put back, and the priority of the SQS queue that gets it. The inbound queue has only 1."""

    message: Message
    level: int = 1


Rule = Callable[[Message], PutBack]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Selects dead letters: those to which every given condition applies.

    `errors` are names of exception types, `reason` is a part of the reason's text, `ids` are job ids, and `queue` is
    the jobs' queue. `sent_before` and `sent_after` limit when the message was sent; SQS keeps that time when it moves a
    message to the dead-letter queue itself.
    """

    errors: frozenset[str] = frozenset()
    reason: str = ""
    ids: frozenset[str] = frozenset()
    queue: str | None = None
    sent_before: datetime | None = None
    sent_after: datetime | None = None

    def has(self, arrival: Arrival) -> bool:
        """Return whether a message is selected."""
        attributes = arrival.message.attributes
        return (
            (not self.errors or error_of(arrival.message) in self.errors)
            and self.reason in attributes.get(REASON, "")
            and (not self.ids or attributes.get(ID) in self.ids)
            and (self.queue is None or _queue_of(arrival.message) == self.queue)
            and (self.sent_before is None or arrival.sent < self.sent_before)
            and (self.sent_after is None or arrival.sent > self.sent_after)
        )


def error_of(message: Message) -> str:
    """Return the name of the exception type with which a job finally failed."""
    return message.attributes.get(ERROR, BY_SQS)


def kind_of(message: Message) -> str:
    """Return what a dead letter is counted under: its error, or the reason of a parked job."""
    return message.attributes.get(ERROR) or message.attributes.get(REASON) or BY_SQS


def to_its_queue(message: Message, *, levels: int) -> PutBack:
    """Return a failed job as it is sent to its queue again: without the attributes that describe its failure.

    A message without a job gets priority 1. Raises InvalidJob when the queue does not have the job's priority.
    """
    sent = unfolded(message.attributes)
    attributes = {name: value for name, value in sent.items() if name not in (REASON, ERROR, ATTEMPTS)}
    if sent.get(ERROR) == INTERRUPTED:
        attributes[AGAIN] = str(number(sent.get(AGAIN)) + 1)
    level = number(sent.get(PRIORITY)) or 1
    if level > levels:
        raise InvalidJob(f"the queue has no level {level}: it has {levels}")
    return PutBack(message=Message(body=message.body, attributes=attributes, group=_tenant_of(message)), level=level)


def to_inbound(message: Message, *, now: datetime, past_retention: bool) -> PutBack:
    """Return a parked job as it is sent to the inbound queue again: without the reason.

    Raises InvalidJob when the message has no job, or one past its retention, unless `past_retention` gives it another
    day.
    """
    job = message.job()
    attributes = {name: value for name, value in unfolded(message.attributes).items() if name != REASON}
    if job.expires <= now:
        if not past_retention:
            raise InvalidJob("the job is past its retention")
        attributes[EXPIRES] = instant.text(now + LONGER)
    return PutBack(message=Message(body=message.body, attributes=attributes, group=job.id.queue))


def _queue_of(message: Message) -> str | None:
    try:
        return JobId.parse(message.attributes.get(ID, "")).queue
    except JobNotFound:
        return None


def _tenant_of(message: Message) -> str | None:
    """Return the tenant of a message's job, if it has a valid one: SQS does not take any text as a message group."""
    try:
        return message.job().tenant
    except InvalidJob:
        return None


def number(text: str | None) -> int:
    """Return the number in an attribute, 0 where it has none: anyone may write any text there."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else 0
