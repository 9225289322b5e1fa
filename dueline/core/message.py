"""A job as SQS carries it: the body is the payload, untouched; the rest travels in message attributes.

The same form is sent to a team's queue, to the inbound queue and to the dead-letter queues,
so that whatever was parked can be put back through the inbound queue as it is.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, TypeVar

from dueline.core import instant
from dueline.core.job import MAX_PRIORITY, JobId, Route, StoredJob, origin_fields
from dueline.core.text import plain, plain_lines
from dueline.core.trace import TRACEPARENT, TRACESTATE, TraceContext
from dueline.errors import ClientTooOld, DeploymentTooOld, InvalidJob, JobNotFound

ID = "dueline-id"
DUE = "dueline-due"
EXPIRES = "dueline-expires"
KEY = "dueline-key"
KIND = "dueline-kind"
TENANT = "dueline-tenant"
PRIORITY = "dueline-priority"
MOVES = "dueline-moves"
SCHEDULE = "dueline-schedule"
# What a move by a key does to the key's row, as JSON: the id that it must have, and what it gets.
KEY_CHANGE = "dueline-key-change"
REASON = "dueline-reason"
# What a worker notes of a job that it gave up: the type of the error, how often it was tried, and the error's stack.
ERROR = "dueline-error"
ATTEMPTS = "dueline-attempts"
STACK = "dueline-stack"
# The schema of a message; like that of a row, left out where it is 1.
OF_SCHEMA = "dueline-v"
# How often a job was put back whose attempt ended without a word, so that a once-only job may run again.
AGAIN = "dueline-again"
# That a body is a pointer to a payload of so many bytes, as the Amazon SQS Extended Client Library says it:
# https://github.com/awslabs/amazon-sqs-java-extended-client-lib
OFFLOADED_BYTES = "ExtendedPayloadSize"

BATCH_MESSAGES = 10
BATCH_BYTES = 1024 * 1024
MAX_ATTRIBUTES = 10
# More than all of Dueline's attributes take together, a reason and a tracestate of their greatest length among them.
ATTRIBUTES_BYTES = 3072
_REASON_CHARACTERS, _STACK_CHARACTERS = 1000, 4096
_PRIORITIES = tuple(map(str, range(1, MAX_PRIORITY + 1)))
_MAX_DIGITS = 18
_DISPENSABLE = (TRACESTATE, TRACEPARENT)
# What is read of a message where it is: these are folded last, and its trace first.
_READ = (OF_SCHEMA, ID, EXPIRES, DUE, PRIORITY, KIND, TENANT, OFFLOADED_BYTES, MOVES, AGAIN, SCHEDULE, KEY, KEY_CHANGE)
_FIRST = {name: place for place, name in enumerate(_READ)} | {TRACEPARENT: len(_READ) + 2, TRACESTATE: len(_READ) + 3}
FOLDED = "dueline-folded"
# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
REFUSED_CHARACTERS = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
_ATTRIBUTE_NAME = re.compile(r"(?!(?i:aws|amazon)\.)[\w-]+(\.[\w-]+)*", re.ASCII)
_ATTRIBUTE_TYPE = re.compile(r"(String|Number|Binary)(\.[\w.-]+)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)
# What this version of the code writes, and the latest that it reads. Each later one is read first, and written in a
# release after that. Version 1 is left out of rows: it would cost bytes, and nothing else was ever written without.
# A kind of row that earlier versions may pass over, as they do with those that they do not know, is no later schema.
SCHEMA = 1
# The earliest that clients may still write. Rows of earlier versions are read for as long as there are some: ten years.
OLDEST_SCHEMA = 1
VERSION = "v"


class TypedText(str):
    """The value of an attribute whose SQS data type is not String, as text: bytes are in base64.

    Raises ValueError when its type is one of bytes and it is not base64.
    """

    data_type: str

    def __new__(cls, text: str, *, data_type: str) -> "TypedText":
        typed = super().__new__(cls, text)
        typed.data_type = data_type
        if typed.is_binary:
            base64.b64decode(text, validate=True)
        return typed

    @classmethod
    def of_bytes(cls, value: bytes, *, data_type: str = "Binary") -> "TypedText":
        return cls(base64.b64encode(value).decode(), data_type=data_type)

    @property
    def is_binary(self) -> bool:
        return self.data_type.partition(".")[0] == "Binary"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A message for SQS: its body, its attributes, its delay in seconds, and its message group for fair queues.

    If its attributes are more than SQS takes, some travel folded into one, and are unfolded where it is received.
    Attributes of other types than String are TypedText.
    """

    body: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    delay: int = 0
    group: str | None = None

    @property
    def sent_bytes(self) -> int:
        """The bytes that SQS counts: the body's, and each attribute's name, type and value."""
        names = ((name, type_of(name, value)) for name, value in self.attributes.items())
        return _bytes(self.body, *chain.from_iterable(names)) + sum(map(_value_bytes, self.attributes.values()))

    @property
    def size(self) -> int:
        """At least the bytes that SQS counts for a message with the attributes that Dueline writes."""
        return len(self.body.encode()) + ATTRIBUTES_BYTES

    @classmethod
    def of(
        cls,
        job: StoredJob,
        *,
        delay: int = 0,
        group: str | None = None,
        moves: JobId | None = None,
        key_change: str | None = None,
    ) -> "Message":
        """Return the message that carries a job; `moves` is the job that it is to replace, and `key_change` how."""
        attributes = {ID: str(job.id), DUE: instant.text(job.id.due), EXPIRES: instant.text(job.expires)}
        texts = {KEY: job.key, KIND: job.kind, TENANT: job.tenant, SCHEDULE: job.origin, KEY_CHANGE: key_change}
        attributes |= {name: text for name, text in texts.items() if text is not None}
        attributes |= {PRIORITY: str(job.priority)} if job.priority != 1 else {}
        attributes |= {MOVES: str(moves)} if moves else {}
        attributes |= {OFFLOADED_BYTES: str(job.offloaded_bytes)} if job.offloaded_bytes is not None else {}
        attributes |= job.trace.headers if job.trace is not None else {}
        return cls(body=job.payload, attributes=attributes, delay=delay, group=group)

    def with_reason(self, reason: str) -> "Message":
        """Return this message as it is parked, with the reason, as far as SQS has room for it."""
        return self.with_reasons({REASON: reason})

    def with_reasons(self, why: Mapping[str, str]) -> "Message":
        """Return this message for a dead-letter queue, with attributes that say why, as far as there is room.

        It keeps its own attributes: if they are too many for SQS, some are folded into one, the trace first. If they
        have too many bytes, the beginning of the stack is dropped, then the tracestate, the traceparent, and the end of
        the reason.
        """
        reasons = {name: plain(value, most=_REASON_CHARACTERS) for name, value in why.items() if name != STACK}
        stack = plain_lines(why.get(STACK, ""), most=_STACK_CHARACTERS)
        own = {name: value for name, value in self.attributes.items() if value and name not in {STACK, *reasons}}
        most = MAX_ATTRIBUTES - len(reasons) - bool(stack)
        for name in _DISPENSABLE:
            if not self._has_room(folded(own, most=most) | reasons):
                own.pop(name, None)
        kept = folded(own, most=most)
        if not self._has_room(kept):
            kept = folded(own, most=MAX_ATTRIBUTES)
        for name, value in (reasons | ({STACK: stack} if stack else {})).items():
            room = BATCH_BYTES - self._sent_with(kept) - _bytes(name, type_of(name, ""))
            if len(kept) < MAX_ATTRIBUTES and room >= (1 if name in (REASON, STACK) else len(value)):
                kept = kept | {name: value[-room:] if name == STACK else value[:room]}
        return Message(body=self.body, attributes=kept)

    def _has_room(self, attributes: Mapping[str, str]) -> bool:
        return self._sent_with(attributes) <= BATCH_BYTES

    def _sent_with(self, attributes: Mapping[str, str]) -> int:
        return Message(body=self.body, attributes=attributes).sent_bytes

    def job(self) -> StoredJob:
        """Return the job that this message carries. Raises InvalidJob, saying what is wrong, when it carries none."""
        id, expires = self._id_and_expiry()
        priority, size = self.attributes.get(PRIORITY, "1"), self.attributes.get(OFFLOADED_BYTES)
        if expires < id.due:
            raise InvalidJob(f"message attribute {EXPIRES} is {instant.text(expires)}, before the job is due")
        if priority not in _PRIORITIES:
            raise InvalidJob(f"message attribute {PRIORITY} is {priority[:200]!r}: it must be from 1 to {MAX_PRIORITY}")
        if size is not None and not _is_number(size):
            raise InvalidJob(f"message attribute {OFFLOADED_BYTES} is {size[:100]!r}: it must be a number of bytes")
        return StoredJob(
            id=id,
            payload=self.body,
            expires=expires,
            key=self.attributes.get(KEY),
            kind=self.attributes.get(KIND),
            tenant=self.attributes.get(TENANT),
            priority=int(priority),
            offloaded_bytes=None if size is None else int(size),
            trace=TraceContext.from_headers(self.attributes),
            **origin_fields(self.attributes.get(SCHEDULE)),
        )

    def _id_and_expiry(self) -> tuple[JobId, datetime]:
        try:
            # In a dead-letter queue, what a later version wrote may wait for an upgrade.
            check_readable({VERSION: self.attributes.get(OF_SCHEMA, 1)})
            return JobId.parse(self.attributes[ID]), instant.parse(self.attributes[EXPIRES])
        except KeyError as missing:
            raise InvalidJob(f"message attribute {missing} is missing") from None
        except (JobNotFound, ValueError) as error:
            raise InvalidJob(f"message attributes name no job: {error}") from None

    def moves(self) -> JobId | None:
        """Return the job that this message's job is to replace, or None.

        Raises InvalidJob, saying what is wrong, when there is one to replace but the message carries no job, or names
        one that it cannot replace.
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
    """Return the SQS data type of an attribute: its own, or String, unless its readers expect a Number."""
    if isinstance(value, TypedText):
        return value.data_type
    return "Number" if name == OFFLOADED_BYTES and _is_number(value) else "String"


_T = TypeVar("_T")
_BY_PRIORITY = attrgetter("priority")
_BY_DUE = attrgetter("id.due")


def batches(
    items: Iterable[_T],
    *,
    size: Callable[[_T], int],
    most: int = BATCH_MESSAGES,
    most_bytes: int = BATCH_BYTES,
    together: Callable[[_T, _T], bool] = lambda first, item: True,
) -> Iterator[list[_T]]:
    """Cut items, in order, into batches of at most so many items and bytes, by default those that SQS takes.

    An item that is larger is a batch of its own, and one that may not be `together` with a batch's first begins the
    next. Source: the quotas of SendMessageBatch.
    """
    batch: list[_T] = []
    room = most_bytes
    for item in items:
        if batch and (len(batch) == most or size(item) > room or not together(batch[0], item)):
            yield batch
            batch, room = [], most_bytes
        batch.append(item)
        room -= size(item)
    if batch:
        yield batch


def job_batches(
    jobs: Iterable[StoredJob],
    *,
    by: Callable[[StoredJob], Any] = _BY_DUE,
    together: Callable[[StoredJob, StoredJob], bool] = lambda first, job: True,
) -> Iterator[list[StoredJob]]:
    """Cut jobs into batches of one priority each that SQS takes, whatever attributes are added; earliest due first.

    `by` gives another order than that of due times, and `together` says which jobs may go with the first of a batch.
    """
    levels = groupby(sorted(sorted(jobs, key=by), key=_BY_PRIORITY), key=_BY_PRIORITY)
    size: Callable[[StoredJob], int] = lambda job: job.size + ATTRIBUTES_BYTES  # noqa: E731
    cut = chain.from_iterable(batches(level, size=size, together=together) for _, level in levels)
    return iter(sorted(cut, key=lambda batch: by(batch[0])))


def escaped(text: str) -> str:
    r"""Return JSON text with the characters that SQS refuses in a message as JSON escapes, which say the same.

    >>> escaped('"a\x01\ufffe"')
    '"a\\u0001\\ufffe"'
    """
    return REFUSED_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _bytes(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts)


def _value_bytes(value: str) -> int:
    binary = binary_value(value)
    return _bytes(value) if binary is None else len(binary)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def binary_value(text: str) -> bytes | None:
    """Return the bytes of a binary attribute, or None for any other."""
    return base64.b64decode(text) if isinstance(text, TypedText) and text.is_binary else None


def from_sqs(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a message as ReceiveMessage returns them."""
    return unfolded(
        {
            name: _text(each.get("DataType"), each.get("StringValue"), each.get("BinaryValue"))
            for name, each in attributes.items()
        }
    )


def from_lambda_event(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of a message as an event of Lambda has them: bytes are in base64 there."""
    return unfolded(
        {
            name: _text(each.get("dataType"), each.get("stringValue"), base64.b64decode(each.get("binaryValue") or ""))
            for name, each in attributes.items()
        }
    )


def _text(data_type: str | None, text: str | None, binary: bytes | None) -> str:
    if text is not None:
        return text if data_type in ("String", None) else TypedText(text, data_type=data_type)
    return TypedText.of_bytes(binary or b"", data_type=data_type or "Binary")


def folded(attributes: Mapping[str, str], *, most: int) -> dict[str, str]:
    """Return attributes as so many at most, 1 or more: those that matter least as a JSON object in one.

    >>> folded({"a": "1", "b": "2", "c": TypedText("3", data_type="Number")}, most=2)
    {'a': '1', 'dueline-folded': '{"b":"2","c":["Number","3"]}'}
    """
    if len(attributes) <= most:
        return dict(attributes)
    each = sorted(attributes.items(), key=lambda each: _FIRST.get(each[0], len(_READ)))
    rest = {name: [text.data_type, text] if isinstance(text, TypedText) else text for name, text in each[most - 1 :]}
    return {**dict(each[: most - 1]), FOLDED: json.dumps(rest, ensure_ascii=False, separators=(",", ":"))}


def unfolded(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes as they were before `folded`. What it never wrote stays as it is: anyone may send one.

    >>> unfolded({"a": "1", "dueline-folded": '{"b":"2"}'})
    {'a': '1', 'b': '2'}
    """
    if FOLDED not in attributes:
        return dict(attributes)
    try:
        rest = {name: _unfolded(name, value) for name, value in json.loads(attributes[FOLDED]).items()}
    except (AttributeError, ValueError, RecursionError):
        return dict(attributes)
    own = {name: value for name, value in attributes.items() if name != FOLDED}
    return own | {name: value for name, value in rest.items() if name not in own}


def _unfolded(name: str, value: object) -> str:
    match value:
        case str(text):
            typed = text
        case [str(data_type), str(text)] if _ATTRIBUTE_TYPE.fullmatch(data_type):
            typed = TypedText(text, data_type=data_type)
            if data_type.startswith("Number") and not _NUMBER.fullmatch(text):
                raise ValueError("it is no number")
        case _:
            raise ValueError("it is no folded attribute")
    if not _ATTRIBUTE_NAME.fullmatch(name) or len(name) > 256 or REFUSED_CHARACTERS.search(text):
        raise ValueError("SQS would refuse it")
    return typed


def check_readable(row: Mapping[str, Any]) -> None:
    """Raise ValueError where a row was written by a later version: what its attributes mean is not known here."""
    version = int(row.get(VERSION, 1))
    if version > SCHEMA:
        raise ValueError(f"it is of schema {version}, and this version of Dueline reads up to {SCHEMA}")


def check_deployment(name: str, *, latest: int, oldest: int) -> None:
    """Raise DeploymentTooOld or ClientTooOld unless a deployment takes what this version of the code writes.

    `latest` is the latest schema that it reads, 0 if it publishes none, and `oldest` the earliest that it takes.
    """
    if latest < SCHEMA:
        reads = f"reads schema {latest}" if latest else "publishes no schema"
        raise DeploymentTooOld(
            f"the deployment {name!r} {reads}, and this client writes schema {SCHEMA}: deploy it with this version of"
            " Dueline, or install the version that is deployed"
        )
    if oldest > SCHEMA:
        raise ClientTooOld(
            f"the deployment {name!r} takes schemas {oldest} to {latest}, and this client writes schema {SCHEMA}:"
            " install the version of Dueline that is deployed"
        )
