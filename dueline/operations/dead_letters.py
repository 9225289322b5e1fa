"""Dead letters: why each failed, which ones a redrive selects, and the message that is put back."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from dueline.core import instant
from dueline.core import message as attribute
from dueline.core.job import JobId
from dueline.core.message import Message
from dueline.core.ports import Pointer, QueueMessage
from dueline.core.trace import TraceContext
from dueline.errors import InvalidJob, JobNotFound

# The group of a job that SQS itself moved, after the last receive that it allows.
BY_SQS = "ReceivedTooOften"
# The error of a once-only job whose earlier attempt ended without a word.
INTERRUPTED = "Interrupted"
_OF_A_FAILURE = (attribute.REASON, attribute.ERROR, attribute.ATTEMPTS, attribute.STACK)
LONGER = timedelta(days=1)
# Anyone may send a dead letter, with a megabyte in each attribute. Workers write less.
MOST_GROUP_CHARACTERS = 200


# Returns the message that is put back in place of a dead letter. Raises InvalidJob for one that cannot be.
Rule = Callable[[Message], Message]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetterFilter:
    """Selects dead letters: those to which every given condition applies.

    `errors` are as dead letters are shown (see `error_of`), `kinds` those of their jobs, "" without one, and `groups`
    errors with a kind each, as they are counted. `ids` are job ids, `messages` ids of SQS, and `queue` is the jobs'
    queue. `sent_before` and `sent_after` limit when the message was sent; SQS keeps that time when it moves a message
    to the dead-letter queue itself.
    """

    errors: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    groups: frozenset[tuple[str, str]] = frozenset()
    ids: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    queue: str | None = None
    sent_before: datetime | None = None
    sent_after: datetime | None = None

    def has(self, arrival: QueueMessage) -> bool:
        error, kind = group_of(arrival.message)
        return (
            (not self.errors or error in self.errors)
            and (not self.kinds or kind in self.kinds)
            and (not self.groups or (error, kind) in self.groups)
            and (not self.ids or arrival.message.attributes.get(attribute.ID) in self.ids)
            and (not self.messages or arrival.message_id in self.messages)
            and (self.queue is None or _queue_of(arrival.message) == self.queue)
            and (self.sent_before is None or arrival.sent < self.sent_before)
            and (self.sent_after is None or arrival.sent > self.sent_after)
        )


def error_of(message: Message) -> str:
    """Return the error of a dead letter, to show and to select it: its exception's name, or without one the reason.

    It is cut to MOST_GROUP_CHARACTERS.
    """
    error = message.attributes.get(attribute.ERROR) or message.attributes.get(attribute.REASON) or BY_SQS
    return error[:MOST_GROUP_CHARACTERS]


def group_of(message: Message) -> tuple[str, str]:
    """Return the group in which a dead letter is counted: its error, and its job's kind, "" without one."""
    return error_of(message), message.attributes.get(attribute.KIND, "")[:MOST_GROUP_CHARACTERS]


def to_its_queue(message: Message, *, levels: int) -> Message:
    """Return a failed job as it is sent to its queue again: without the attributes that describe its failure.

    Raises InvalidJob when the queue does not have the job's priority.
    """
    sent = message.attributes
    attributes = {name: value for name, value in sent.items() if name not in _OF_A_FAILURE}
    if sent.get(attribute.ERROR) == INTERRUPTED:
        attributes[attribute.AGAIN] = str(number(sent.get(attribute.AGAIN)) + 1)
    if priority_of(message) > levels:
        raise InvalidJob(f"the queue has no priority {priority_of(message)}: its lowest is {levels}")
    return Message(body=message.body, attributes=attributes, group=_tenant_of(message))


def priority_of(message: Message) -> int:
    """Return the priority of a message's job, 1 without one."""
    return number(message.attributes.get(attribute.PRIORITY)) or 1


def to_inbound(message: Message, *, now: datetime, past_retention: bool) -> Message:
    """Return a parked job as it is sent to the inbound queue again: without the reason.

    Raises InvalidJob when the message has no job, or one past its retention, unless `past_retention` gives it another
    day.
    """
    if attribute.ID not in message.attributes:
        raise InvalidJob(
            "it has no job id: a row that cannot be read or sent is parked as JSON. Schedule it again by hand"
        )
    job = message.job()
    attributes = {name: value for name, value in message.attributes.items() if name != attribute.REASON}
    if job.expires <= now:
        if not past_retention:
            raise InvalidJob("the job is past its retention")
        attributes[attribute.EXPIRES] = instant.text(now + LONGER)
    return Message(body=message.body, attributes=attributes, group=job.id.queue)


def own_pointer(message: Message) -> Pointer | None:
    """Return where the payload of a message's job is kept in S3, if it is one of its own queue's."""
    queue = _queue_of(message)
    if queue is None or attribute.OFFLOADED_BYTES not in message.attributes:
        return None
    try:
        pointer = Pointer.parse(message.body)
    except ValueError:
        return None
    return pointer if pointer.is_of(queue) else None


def _queue_of(message: Message) -> str | None:
    try:
        return JobId.parse(message.attributes.get(attribute.ID, "")).queue
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


# Dead letters by their errors and kinds, and counts of them as JSON, alike for the command line and the console.
@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorGroup:
    """How many dead letters of one error and kind there are, and when the oldest and the newest of them were sent.

    The kind is "" where their jobs have none.
    """

    error: str
    kind: str = ""
    count: int
    oldest: datetime
    newest: datetime


class ErrorGroups:
    """Counts dead letters by their error, or what they are counted under without one, and kind. It keeps few."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], ErrorGroup] = {}
        self.total = 0

    def add(self, arrival: QueueMessage) -> None:
        key, sent = group_of(arrival.message), arrival.sent
        group = self._groups.get(key)
        if group is None:
            group = ErrorGroup(error=key[0], kind=key[1], count=0, oldest=sent, newest=sent)
        oldest, newest = min(group.oldest, sent), max(group.newest, sent)
        self._groups[key] = replace(group, count=group.count + 1, oldest=oldest, newest=newest)
        self.total += 1

    def by_frequency(self) -> tuple[ErrorGroup, ...]:
        """Return each group, the most frequent first."""
        return tuple(sorted(self._groups.values(), key=lambda group: (-group.count, group.error, group.kind)))


def dead_letter_json(arrival: QueueMessage) -> dict[str, Any]:
    """Return a dead letter's job, and why it failed and where, without its payload."""
    attributes, (error, kind) = arrival.message.attributes, group_of(arrival.message)
    trace = TraceContext.from_headers(attributes)
    return {
        "id": attributes.get(attribute.ID),
        "reason": attributes.get(attribute.REASON),
        "attempts": number(attributes.get(attribute.ATTEMPTS)) or None,
        "stack": attributes.get(attribute.STACK),
        "sent": instant.text(arrival.sent),
        "key": attributes.get(attribute.KEY),
        "tenant": attributes.get(attribute.TENANT),
        "trace": trace.parent.split("-")[1] if trace else None,
        "error": error,
        "kind": kind or None,
    }


def error_groups_json(groups: Iterable[ErrorGroup]) -> list[dict[str, Any]]:
    return [
        {
            "error": each.error,
            "kind": each.kind or None,
            "count": each.count,
            "oldest": instant.text(each.oldest),
            "newest": instant.text(each.newest),
        }
        for each in groups
    ]


def reasons_json(counted: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"reason": reason, "count": count} for reason, count in counted.items()]
