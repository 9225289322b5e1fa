"""A dead letter: what it tells of its failure, which ones are wanted, and as what it is put back."""

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
    """A message as it is put back, and to which level: 1 is also that of the inbound queue, which has no others."""

    message: Message
    level: int = 1


Rule = Callable[[Message], PutBack]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which dead letters are meant: those of which all holds that is given.

    `errors` are types of errors, `reason` is in the reason's text, `ids` are those of jobs, and `queue` is theirs.
    `sent_before` and `sent_after` bound when the message was sent; SQS leaves that as it was when it moves one itself.
    """

    errors: frozenset[str] = frozenset()
    reason: str = ""
    ids: frozenset[str] = frozenset()
    queue: str | None = None
    sent_before: datetime | None = None
    sent_after: datetime | None = None

    def has(self, arrival: Arrival) -> bool:
        """Tell whether a message is one of them."""
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
    """Return the type of the error for which a job was given up."""
    return message.attributes.get(ERROR, BY_SQS)


def kind_of(message: Message) -> str:
    """Return by what dead letters are counted: the error, or for a job that was parked the reason."""
    return message.attributes.get(ERROR) or message.attributes.get(REASON) or BY_SQS


def to_its_queue(message: Message, *, levels: int) -> PutBack:
    """Return a failed job as its queue takes it again: without the attributes that describe its failure.

    A message that carries no job goes to level 1. Raises InvalidJob when the queue does not have the job's level.
    """
    sent = unfolded(message.attributes)
    attributes = {name: value for name, value in sent.items() if name not in (REASON, ERROR, ATTEMPTS)}
    if sent.get(ERROR) == INTERRUPTED:
        attributes[AGAIN] = str(_number(sent.get(AGAIN)) + 1)
    level = _number(sent.get(PRIORITY)) or 1
    if level > levels:
        raise InvalidJob(f"the queue has no level {level}: it has {levels}")
    return PutBack(message=Message(body=message.body, attributes=attributes, group=_tenant_of(message)), level=level)


def to_inbound(message: Message, *, now: datetime, past_retention: bool) -> PutBack:
    """Return a parked job as the inbound queue takes it again: without the reason.

    Raises InvalidJob when the message carries no job, or one past its retention, unless `past_retention` says that it
    is to be sent for a day more.
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
    """Return the tenant of the job that a message carries, if it carries one: SQS takes not any text as a group."""
    try:
        return message.job().tenant
    except InvalidJob:
        return None


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else 0
