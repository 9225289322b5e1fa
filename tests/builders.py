"""What tests speak of, with defaults that do not matter to them."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline.core.job import JobId, Partition, Route, StoredJob
from dueline.core.message import Message
from dueline.core.queue_settings import QueueSettings

NOW = datetime(2026, 11, 21, 7, 5, tzinfo=UTC)
RETENTION = timedelta(days=7)
EMAILS = Partition(queue="emails", number=0)
# What a function finds on Lambda besides its settings; without credentials, botocore looks for some on the network.
NOBODY = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nobody"}


def uids() -> Iterator[str]:
    """Yield UUIDs in order, so that a failing test names the job that it means, to several threads too."""
    return map("00000000-0000-4000-8000-{:012x}".format, itertools.count())


_UIDS = uids()


def emails(number: int) -> Partition:
    return Partition(queue="emails", number=number)


def an_id(**overrides: Any) -> JobId:
    fields = {"partition": EMAILS, "route": Route.TABLE, "due": NOW + timedelta(hours=1), "uid": next(_UIDS)}
    return JobId(**(fields | overrides))


def a_job(*, payload: str = '{"to":"ada"}', expires: datetime | None = None, **fields: Any) -> StoredJob:
    """Return a job, with what is given of its id and of its other fields."""
    id = an_id(**{name: fields.pop(name) for name in ("partition", "route", "due", "uid") if name in fields})
    return StoredJob(id=id, payload=payload, expires=expires or id.due + RETENTION, **fields)


def due_in(seconds: float, **overrides: Any) -> StoredJob:
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def id_due_in(seconds: float, **overrides: Any) -> JobId:
    return an_id(due=NOW + timedelta(seconds=seconds), **overrides)


def a_message(**overrides: Any) -> Message:
    return Message(**({"body": "{}", "attributes": {"colour": "green"}} | overrides))


def a_queue(**overrides: Any) -> QueueSettings:
    return QueueSettings(**({"name": "emails", "partitions": 1, "retention": RETENTION} | overrides))
