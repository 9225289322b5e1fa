"""What the page does with dead letters: look at them, put them back, delete them. Each is a run in the background."""

import random
from collections.abc import Mapping
from functools import partial
from typing import Any

from dueline.console import asked
from dueline.console.reach import Reach
from dueline.console.runs import Progress, Run, Runs, Work
from dueline.console.samples import Sampling
from dueline.model import instant
from dueline.model.job import queue_name
from dueline.operate.dead_letters import Wanted, to_its_queue
from dueline.operate.delete_dead_letters import delete_dead_letters
from dueline.operate.redrive import Ends, Kind, Redrive
from dueline.retry.calls import Calls
from dueline.retry.patience import Patience

Body = Mapping[str, Any]
# Of more dead letters a look would take minutes, in which nobody else receives them.
_LOOKED_AT, _MOST_LOOKED_AT = 10_000, 100_000
_MOST = 10**9


class DeadLetterRuns:
    """Begins runs over the dead letters of queues.

    Each raises InvalidJob for a wrong field, QueueNotFound for what is no queue's name, and Refused while a run of the
    queue is under way.
    """

    def __init__(self, reach: Reach, runs: Runs) -> None:
        self._reach, self._runs = reach, runs

    def look(self, queue: str, body: Body) -> Run:
        """Count dead letters by their error, with samples. All are as before after it, and visible to others."""
        asked.check_fields(body, "limit")
        limit = asked.limit(body, default=_LOOKED_AT, most=_MOST_LOOKED_AT)

        def work(progress: Progress) -> dict[str, Any]:
            ends = self._reach.dead_letters(queue)
            sampling = Sampling(ends.dead_letters)
            done = self._redrive(Ends(dead_letters=sampling, queues=ends.queues), progress, limit=limit).look()
            kinds = [{**_kind(kind), "samples": sampling.of(kind.error)} for kind in done.kinds]
            return {"found": done.found, "there": sampling.there, "hidden": done.hidden, "kinds": kinds}

        return self._begin(queue, "look", work, applies=False)

    def redrive(self, queue: str, body: Body) -> Run:
        """Put dead letters back, or with `apply` false tell which would be."""
        asked.check_fields(body, "errors", "limit", "apply")
        wanted, applies = Wanted(errors=asked.errors(body)), asked.is_to_apply(body)
        limit = asked.limit(body, default=None, most=_MOST)

        def work(progress: Progress) -> dict[str, Any]:
            redrive = self._redrive(self._reach.dead_letters(queue), progress, wanted=wanted, limit=limit)
            done = redrive.apply() if applies else redrive.look()
            counts = {name: getattr(done, name) for name in ("found", "wanted", "moved", "hidden")}
            why = {"stay": _reasons(done.stay), "failed": _reasons(done.failed)}
            return {"applied": applies, **counts, "kinds": [_kind(kind) for kind in done.kinds], **why}

        return self._begin(queue, "redrive", work, applies=applies)

    def delete(self, queue: str, body: Body) -> Run:
        """Delete dead letters for good, once `confirm` is the queue's name."""
        asked.check_fields(body, "confirm", "errors")
        asked.check_confirmed(body, queue)
        wanted = Wanted(errors=asked.errors(body))

        def work(progress: Progress) -> dict[str, Any]:
            dead_letters, spread = self._reach.dead_letters(queue).dead_letters, self._reach.spread
            done = delete_dead_letters(
                dead_letters, calls=self._calls(), wanted=wanted, spread=spread, on_progress=progress
            )
            counts = {name: getattr(done, name) for name in ("found", "wanted", "deleted", "hidden")}
            return {**counts, "kinds": [_kind(kind) for kind in done.kinds], "failed": _reasons(done.failed)}

        return self._begin(queue, "delete", work, applies=True)

    def _begin(self, queue: str, action: str, work: Work, *, applies: bool) -> Run:
        return self._runs.begin(queue_name(queue), action, work, applies=applies)

    def _redrive(self, ends: Ends, progress: Progress, **given: Any) -> Redrive:
        rule = partial(to_its_queue, levels=len(ends.queues))
        return Redrive(ends, rule=rule, calls=self._calls(), spread=self._reach.spread, on_progress=progress, **given)

    def _calls(self) -> Calls:
        return Calls(patience=Patience(), clock=self._reach.clock, jitter=random.random)


def _kind(kind: Kind) -> dict[str, Any]:
    times = {"oldest": instant.text(kind.oldest), "newest": instant.text(kind.newest)}
    return {"error": kind.error, "count": kind.count, **times}


def _reasons(counted: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"reason": reason, "count": count} for reason, count in counted.items()]
