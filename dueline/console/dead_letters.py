"""What the page does with dead letters: look at them, put them back, delete them. Each is a run in the background."""

import random
from collections.abc import Mapping
from functools import partial
from typing import Any

from dueline.console import asked
from dueline.console.reach import Reach
from dueline.console.runs import Progress, Run, Runs
from dueline.console.samples import sample
from dueline.operate.dead_letters import Wanted, to_its_queue
from dueline.operate.delete_dead_letters import Deleted, delete_dead_letters
from dueline.operate.kinds import kinds_told, reasons_told
from dueline.operate.redrive import Redrive, Redriven
from dueline.retry.calls import Calls
from dueline.retry.patience import Patience

Body = Mapping[str, Any]
# Of more dead letters a look would take minutes, in which nobody else receives them.
LOOKED_AT = 10_000


class DeadLetterRuns:
    """Begins runs over the dead letters of queues.

    Each raises InvalidJob for a wrong field, and Refused while a run of the queue is under way.
    """

    def __init__(self, reach: Reach, runs: Runs) -> None:
        self._reach, self._runs = reach, runs

    def look(self, queue: str, body: Body) -> Run:
        """Count dead letters by their error, with samples. All are as before after it, and visible to others."""
        asked.check_fields(body)

        def work(progress: Progress) -> dict[str, Any]:
            done = self._redrive(queue, progress, limit=LOOKED_AT).look()
            samples = {error: list(map(sample, some)) for error, some in done.samples.items()}
            kinds = [kind | {"samples": samples[kind["error"]]} for kind in kinds_told(done.kinds)]
            return {"found": done.found, "there": done.there, "hidden": done.hidden, "kinds": kinds}

        return self._runs.begin(queue, work)

    def redrive(self, queue: str, body: Body) -> Run:
        """Put dead letters back, or with `apply` false tell which would be."""
        asked.check_fields(body, "errors", "limit", "apply")
        wanted, limit, applies = Wanted(errors=asked.errors(body)), asked.limit(body), asked.is_to_apply(body)

        def work(progress: Progress) -> dict[str, Any]:
            redrive = self._redrive(queue, progress, wanted=wanted, limit=limit)
            done = redrive.apply() if applies else redrive.look()
            return _told(done) | {"applied": applies, "moved": done.moved, "stay": reasons_told(done.stay)}

        return self._runs.begin(queue, work)

    def delete(self, queue: str, body: Body) -> Run:
        """Delete dead letters for good, once `confirm` is the queue's name."""
        asked.check_fields(body, "confirm", "errors")
        asked.check_confirmed(body, queue)
        wanted = Wanted(errors=asked.errors(body))

        def work(progress: Progress) -> dict[str, Any]:
            ends = self._reach.dead_letters(queue)
            done = delete_dead_letters(ends.dead_letters, wanted=wanted, **self._how(progress))
            return _told(done) | {"deleted": done.deleted}

        return self._runs.begin(queue, work)

    def _redrive(self, queue: str, progress: Progress, **given: Any) -> Redrive:
        ends = self._reach.dead_letters(queue)
        return Redrive(ends, rule=partial(to_its_queue, levels=len(ends.queues)), **self._how(progress), **given)

    def _how(self, progress: Progress) -> dict[str, Any]:
        calls = Calls(patience=Patience(), clock=self._reach.clock, jitter=random.random)
        return {"calls": calls, "spread": self._reach.spread, "on_progress": progress}


def _told(done: Redriven | Deleted) -> dict[str, Any]:
    counts = {"found": done.found, "wanted": done.wanted, "hidden": done.hidden}
    return {**counts, "kinds": kinds_told(done.kinds), "failed": reasons_told(done.failed)}
