"""Astray: tell which jobs nothing would ever hand over, whatever their messages say."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline import rows
from dueline.job import Job, Partition, Route
from dueline.ports import Reading
from dueline.routing import MAX_DELAY_SECONDS
from dueline.rows import Key

# While a deployment adds a queue or a partition, a function may not know yet what its callers do.
PATIENT_RECEIVES = 3


@dataclass(kw_only=True, slots=True)
class Astray:
    """Jobs to be parked, and jobs of which it is not clear yet whether they must be, each with the reason."""

    parked: dict[Job, str] = field(default_factory=dict)
    unclear: dict[Job, str] = field(default_factory=dict)


def sort_out(
    receives: dict[Job, int],
    *,
    is_declared: Callable[[Partition], bool],
    read: Callable[[Iterable[Key]], Reading],
    now: datetime,
) -> Astray:
    """Sort out the jobs that are astray; `receives` tells how often the message of each came.

    A direct job that SQS cannot hold, and one in a partition that no tick reads: queues.yaml does not have it, and it
    has no state. (One that has left queues.yaml is read as before.) To be sure, its message has to come several times.
    """
    astray = Astray()
    strange = [job for job in receives if job.id.route is Route.TABLE and not is_declared(job.id.partition)]
    states = read({rows.state_key(job.id.partition) for job in strange})
    for job in strange:
        key, reason = rows.state_key(job.id.partition), f"no tick reads {job.id.partition}: it is not in queues.yaml"
        if key in states.unread or (key not in states.rows and receives[job] < PATIENT_RECEIVES):
            astray.unclear[job] = reason
        elif key not in states.rows:
            astray.parked[job] = reason
    for job in receives:
        if job.id.route is Route.DIRECT and job.id.due - now > timedelta(seconds=MAX_DELAY_SECONDS):
            astray.parked[job] = f"a direct job is due in over {MAX_DELAY_SECONDS} s, longer than SQS can hold it"
    return astray
