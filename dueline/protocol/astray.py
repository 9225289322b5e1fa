"""Astray: find jobs that would never be sent, because no tick reads them or SQS cannot hold them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline.model import rows
from dueline.model.job import Job, Partition, Route
from dueline.model.routing import MAX_DELAY_SECONDS
from dueline.model.rows import Key
from dueline.ports import Reading

# While a deployment adds a queue or a partition, a function may not know yet what its callers do.
PATIENT_RECEIVES = 3
_NO_TICK = "it is not in queues.yaml, or its queue's stack is not deployed yet"


@dataclass(kw_only=True, slots=True)
class Astray:
    """Jobs to be parked, and jobs of which that is not clear yet, each with the reason.

    Of the `unread` among the latter, the state could not be read.
    """

    parked: dict[Job, str] = field(default_factory=dict)
    unclear: dict[Job, str] = field(default_factory=dict)
    unread: set[Job] = field(default_factory=set)


class Ticks:
    """Knows which partitions have ticks: those that are declared, and those that were found to have some.

    `stands` is asked for partitions that are not declared and that no tick has read yet.
    """

    def __init__(self, *, is_declared: Callable[[Partition], bool], stands: Callable[[Partition], bool]) -> None:
        self._is_declared = is_declared
        self._stands = stands
        self._found: set[Partition] = set()

    def are_known(self, partition: Partition) -> bool:
        return partition in self._found or self._is_declared(partition)

    def are_found(self, partition: Partition, *, has_state: bool) -> bool:
        """Return whether a partition has ticks, by its state or its schedule. Once found, it is not asked again."""
        if has_state or self._stands(partition):
            self._found.add(partition)
        return partition in self._found


def sort_out(
    receives: Mapping[Job, int],
    *,
    ticks: Ticks,
    read: Callable[[Iterable[Key]], Reading],
    now: datetime,
) -> Astray:
    """Sort out the jobs that are astray; `receives` is how often the message of each was received.

    They are direct jobs that SQS cannot hold, and jobs in a partition that no tick reads: it has neither a state nor a
    schedule. (A partition that was removed from queues.yaml has a state, and is still read.) To be sure, the message
    must have been received several times.
    """
    astray = Astray()
    strange = [job for job in receives if job.id.route is Route.TABLE and not ticks.are_known(job.id.partition)]
    states = read({rows.state_key(job.id.partition) for job in strange})
    for job in strange:
        key, reason = rows.state_key(job.id.partition), f"no tick reads {job.id.partition}: {_NO_TICK}"
        if key not in states.unread and ticks.are_found(job.id.partition, has_state=key in states.rows):
            continue
        if key in states.unread or receives[job] < PATIENT_RECEIVES:
            astray.unclear[job] = reason
            astray.unread |= {job} if key in states.unread else set()
        else:
            astray.parked[job] = reason
    for job in receives:
        if job.id.route is Route.DIRECT and job.id.due - now > timedelta(seconds=MAX_DELAY_SECONDS):
            astray.parked[job] = f"a direct job is due in over {MAX_DELAY_SECONDS} s, longer than SQS can hold it"
    return astray
