"""A job as SQS carries it: the body is the payload, untouched; the rest travels in message attributes.

The same form is sent to a team's queue, to the inbound queue and to the dead-letter queues,
so that whatever was parked can be put back through the inbound queue as it is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from typing import TypeVar

from dueline import instant
from dueline.errors import InvalidJob, JobNotFound
from dueline.job import MAX_PRIORITY, Job, JobId, Route
from dueline.trace import TRACEPARENT, TRACESTATE, TraceContext

ID = "dueline-id"
DUE = "dueline-due"
EXPIRES = "dueline-expires"
TENANT = "dueline-tenant"
PRIORITY = "dueline-priority"
MOVES = "dueline-moves"
REASON = "dueline-reason"
# What a worker tells of a job that it gave up: the type of the error, and how often it was tried.
ERROR = "dueline-error"
ATTEMPTS = "dueline-attempts"
# How often a job was put back whose attempt ended without a word, so that a once-only job may run again.
AGAIN = "dueline-again"
# That a body is a pointer to a payload of so many bytes, as the Amazon SQS Extended Client Library says it:
# https://github.com/awslabs/amazon-sqs-java-extended-client-lib
OFFLOADED_BYTES = "ExtendedPayloadSize"

BATCH_MESSAGES = 10
BATCH_BYTES = 1024 * 1024
MAX_ATTRIBUTES = 10
# More than all of Dueline's attributes take together, a reason and a tracestate of their greatest length among them.
ATTRIBUTES_BYTES = 2560
_REASON_CHARACTERS = 1000
_PRIORITIES = tuple(map(str, range(1, MAX_PRIORITY + 1)))
_MAX_DIGITS = 18
DISPENSABLE = (TRACESTATE, TRACEPARENT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """What is sent to SQS: a body, attributes, seconds to hold it, and the group for fair queues."""

    body: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    delay: int = 0
    group: str | None = None

    @property
    def sent_bytes(self) -> int:
        """The bytes that SQS counts: the body's, and each attribute's name, type and value."""
        told = ((name, type_of(name, value), value) for name, value in self.attributes.items())
        return _bytes(self.body, *chain.from_iterable(told))

    @property
    def size(self) -> int:
        """At least the bytes that SQS counts for a message with the attributes that Dueline writes."""
        return len(self.body.encode()) + ATTRIBUTES_BYTES

    @classmethod
    def of(cls, job: Job, *, delay: int = 0, group: str | None = None, moves: JobId | None = None) -> "Message":
        """Return the message that carries a job; `moves` is the job whose place it is to take."""
        attributes = {ID: str(job.id), DUE: instant.text(job.id.due), EXPIRES: instant.text(job.expires)}
        attributes |= {TENANT: job.tenant} if job.tenant is not None else {}
        attributes |= {PRIORITY: str(job.priority)} if job.priority != 1 else {}
        attributes |= {MOVES: str(moves)} if moves else {}
        attributes |= {OFFLOADED_BYTES: str(job.offloaded_bytes)} if job.offloaded_bytes is not None else {}
        attributes |= job.trace.headers if job.trace is not None else {}
        return cls(body=job.payload, attributes=attributes, delay=delay, group=group)

    def with_reason(self, reason: str) -> "Message":
        """Return this message as it is parked, saying why, as far as SQS leaves room for it.

        Where there is no room for all, its tracestate goes first, then its traceparent.
        """
        told = printable(reason)
        # SQS refuses an empty value, which is what is left here of an attribute that is no text.
        kept = [name for name, value in self.attributes.items() if value and name not in (REASON, *DISPENSABLE)]
        kept += [name for name in reversed(DISPENSABLE) if self.attributes.get(name)]
        attributes = {name: self.attributes[name] for name in kept[: MAX_ATTRIBUTES - 1]}
        for name in DISPENSABLE:
            if self._room_for_reason(attributes) < len(told):
                attributes.pop(name, None)
        room = self._room_for_reason(attributes)
        return Message(body=self.body, attributes=attributes | ({REASON: told[:room]} if room > 0 else {}))

    def _room_for_reason(self, attributes: Mapping[str, str]) -> int:
        """Return the bytes that SQS leaves for a reason beside the body and these attributes."""
        unreasoned = Message(body=self.body, attributes=attributes)
        return BATCH_BYTES - unreasoned.sent_bytes - _bytes(REASON, type_of(REASON, ""))

    def job(self) -> Job:
        """Return the job that this message carries.

        Raises InvalidJob, saying what is wrong, when it carries none.
        """
        try:
            id = JobId.parse(self.attributes[ID])
            expires = instant.parse(self.attributes[EXPIRES])
        except KeyError as missing:
            raise InvalidJob(f"message attribute {missing} is missing") from None
        except (JobNotFound, ValueError) as error:
            raise InvalidJob(f"message attributes name no job: {error}") from None
        if expires < id.due:
            raise InvalidJob(f"message attribute {EXPIRES} is {instant.text(expires)}, before the job is due")
        return Job(
            id=id,
            payload=self.body,
            expires=expires,
            tenant=self.attributes.get(TENANT),
            priority=self._priority(),
            offloaded_bytes=self._offloaded_bytes(),
            trace=TraceContext.from_headers(self.attributes),
        )

    def _priority(self) -> int:
        told = self.attributes.get(PRIORITY, "1")
        if told not in _PRIORITIES:
            raise InvalidJob(f"message attribute {PRIORITY} is {told[:200]!r}: it must be from 1 to {MAX_PRIORITY}")
        return int(told)

    def _offloaded_bytes(self) -> int | None:
        told = self.attributes.get(OFFLOADED_BYTES)
        if told is not None and not _is_number(told):
            raise InvalidJob(f"message attribute {OFFLOADED_BYTES} is {told[:100]!r}: it must be a number of bytes")
        return None if told is None else int(told)

    def moves(self) -> JobId | None:
        """Return the job whose place this message's job is to take, if it is to take one's.

        Raises InvalidJob, saying what is wrong, when it is to take one's but carries no job, or names none of which it
        could take the place.
        """
        if MOVES not in self.attributes:
            return None
        taker = self.job().id
        try:
            id = JobId.parse(self.attributes[MOVES])
        except JobNotFound as error:
            raise InvalidJob(f"message attribute {MOVES} names no job: {error}") from None
        if id == taker or id.queue != taker.queue or {id.route, taker.route} != {Route.TABLE}:
            raise InvalidJob(
                f"message attribute {MOVES} is {id}: it must be another job of the table, of the same queue"
            )
        return id


def type_of(name: str, value: str) -> str:
    """Return the type under which SQS takes an attribute: a text, unless it is a number to whoever reads it."""
    return "Number" if name == OFFLOADED_BYTES and _is_number(value) else "String"


_T = TypeVar("_T")
_BY_PRIORITY = attrgetter("priority")


def batches(
    items: Iterable[_T], *, size: Callable[[_T], int], most: int = BATCH_MESSAGES, most_bytes: int = BATCH_BYTES
) -> Iterator[list[_T]]:
    """Cut items, in order, into batches of at most so many items and bytes, by default those that SQS takes.

    An item that is larger is a batch of its own. Source: the quotas of SendMessageBatch.
    """
    batch: list[_T] = []
    room = most_bytes
    for item in items:
        if batch and (len(batch) == most or size(item) > room):
            yield batch
            batch, room = [], most_bytes
        batch.append(item)
        room -= size(item)
    if batch:
        yield batch


def job_batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Cut jobs into batches of one priority each that SQS takes, whatever attributes are added; earliest due first."""
    levels = groupby(sorted(jobs, key=_BY_PRIORITY), key=_BY_PRIORITY)
    cut = chain.from_iterable(batches(level, size=lambda job: job.size + ATTRIBUTES_BYTES) for _, level in levels)
    return iter(sorted(cut, key=lambda batch: batch[0].id.due))


def _bytes(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def printable(reason: str) -> str:
    """Return a reason as an attribute may hold it: ASCII, and not too long."""
    return reason.encode("ascii", "backslashreplace").decode()[:_REASON_CHARACTERS]
