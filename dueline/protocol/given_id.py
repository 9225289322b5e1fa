"""A given id: one that the caller made, or got with an error, under which a job is to be scheduled."""

from datetime import datetime, timedelta

from dueline.errors import InvalidJob, JobNotFound
from dueline.model import instant
from dueline.model.job import JobId, Route
from dueline.model.queue_settings import QueueSettings
from dueline.model.request import FURTHEST, Request
from dueline.model.routing import MAX_DELAY_SECONDS
from dueline.model.text import shown

# By how much the caller's clock may be ahead: its id for 10 years from now is to be as good as a delay of 10 years.
_AHEAD = timedelta(minutes=1)
_EXCLUDED = {"at": "an id says when its job is due", "delay": "an id says when its job is due"} | {
    "key": "a job that has an id of its own is there once without a key"
}


def parsed(text: object) -> JobId:
    """Return the id in a text. Raises InvalidJob unless it is written as ids are."""
    try:
        return JobId.parse(text)  # type: ignore[arg-type]  # it may be anything
    except JobNotFound:
        form = "{queue}.{partition}.{d or t}.{due in ms}.{UUID}, in lower case"
        raise InvalidJob(f"id is {shown(text, most=200)}: it must be of the form {form}") from None


def check_alone(request: Request) -> None:
    """Raise InvalidJob if a request has an id, and beside it what an id takes the place of."""
    for name, reason in _EXCLUDED.items():
        if request.id is not None and getattr(request, name) is not None:
            raise InvalidJob(f"id and {name} are both given: give one of them, {reason}")


def checked(text: str, *, queue: QueueSettings, now: datetime) -> JobId:
    """Return the id in a text, if a job may be scheduled under it now.

    Raises InvalidJob, which says why, where it is another queue's, or in a partition that takes no jobs; where its job
    is due in over 10 years, or is past its retention; and where its route is direct and SQS cannot hold it until it is
    due. The table's route takes whatever is due, however soon.
    """
    id = parsed(text)
    if reason := _refusal(id, queue=queue, now=now):
        raise InvalidJob(f"id is {text!r}: {reason}")
    return id


def _refusal(id: JobId, *, queue: QueueSettings, now: datetime) -> str | None:
    due = instant.text(id.due)
    if id.queue != queue.name:
        return f"it is of queue {id.queue!r}, and the job is for {queue.name!r}"
    if not queue.declares(id.partition):
        return f"partition {id.partition.number} takes no jobs, queue {queue.name!r} has 0 to {queue.partitions - 1}"
    if id.due + queue.retention <= now:
        days = queue.retention / timedelta(days=1)
        return f"its job was due at {due}, and is past its retention of {days:g} days: it would never be sent"
    if id.due > now + FURTHEST + _AHEAD:
        return f"its job is due at {due}: the latest is {instant.text(instant.round_up(now + FURTHEST))}, in 10 years"
    if id.route is Route.DIRECT and id.due - now > timedelta(seconds=MAX_DELAY_SECONDS):
        return f"its job is due at {due}, and by route d SQS can hold it for {MAX_DELAY_SECONDS} s: give it route t"
    return None
