"""By queue: ask for jobs of several queues, a queue at a time."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from dueline.errors import DuelineError
from dueline.model.job import JobId

A = TypeVar("A")
Ids = Sequence[JobId | DuelineError]


def by_queue(ids: Ids, ask: Callable[[str, Ids], Sequence[A]]) -> list[A]:
    """Return what `ask` says of each id, in order. It is asked once for each queue, and once for all that are no id."""
    results: dict[int, A] = {}
    for queue in dict.fromkeys(map(_queue_of, ids)):
        places = [place for place, id in enumerate(ids) if _queue_of(id) == queue]
        results |= zip(places, ask(queue, [ids[place] for place in places]), strict=True)
    return [results[place] for place in range(len(ids))]


def _queue_of(id: JobId | DuelineError) -> str:
    return id.queue if isinstance(id, JobId) else ""
