"""Schedules that are put under one release and changed under the other, and whose runs come all along."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.e2e.faults.books import Books
from tests.e2e.faults.changing import Changing, Schedule
from tests.e2e.faults.heads import dead, heads_of
from tests.e2e.faults.runs import Runs, Span, spans_of, untrue
from tests.e2e.faults.stage import Stage
from tests.e2e.faults.story import Story
from tests.e2e.inbox import wait_until

QUEUE = "reports"
NUMBER = 5
# The first is never changed: its chain of planning jobs goes on from release to release.
STEADY = 1
BETWEEN_CHANGES_SECONDS = 4.0
# After the last change, so long that a rule which it put has run.
TAIL = timedelta(seconds=25)


@dataclass(kw_only=True, slots=True)
class Reports:
    """Schedules of one queue, each of every minute, and what came of them."""

    stage: Stage
    seed: int
    books: Books = field(default_factory=Books)
    until: datetime = field(default_factory=lambda: datetime.now(UTC))
    _changing: Changing = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Put the schedules, and change one after another while the context lasts."""
        self._changing = Changing(self.books, self.stage.http, random.Random(self.seed))
        schedules = [Schedule(queue=QUEUE, name=f"s{number}") for number in range(NUMBER)]
        for number, schedule in enumerate(schedules):
            self._changing.put(schedule, lead=20 + number * 60 / NUMBER)
        thread = threading.Thread(target=self._change, args=(schedules[STEADY:],), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def settle(self) -> None:
        """Wait until what is to run after the last change has come, and the schedules go on."""
        starts = [head.start for head in heads_of(self.stage, [QUEUE]).values()]
        self.until = max(datetime.now(UTC), *starts) + TAIL
        wait_until(lambda: datetime.now(UTC) > self.until)
        wait_until(lambda: not self._runs().missing(self.until), every=0.5)
        wait_until(lambda: not dead(self.stage, [QUEUE], self.until), every=0.5)

    def close(self, story: Story) -> None:
        """Write the promises that were not kept into a story."""
        runs, spans = self._runs(), self._spans()
        story.complaints += runs.complaints(self.until)
        false = untrue(self._changing.told, spans, self._changing.versions)
        story.expect(not false, f"told, but not so: {len(false)}, {false[:3]}")
        died = dead(self.stage, [QUEUE], self.until)
        story.expect(not died, f"a schedule does not die: {died}")
        story.figures |= {
            "changes of schedules": len(self._changing.told),
            "runs that had to come": len(runs.expected(self.until)),
            "runs that came": len(self.books.times),
        }

    def _change(self, schedules: list[Schedule]) -> None:
        while not self._stop.wait(BETWEEN_CHANGES_SECONDS):
            self._changing.change_some(schedules, lead=(20, 40))

    def _spans(self) -> dict[Schedule, list[Span]]:
        return {schedule: spans_of(head) for schedule, head in heads_of(self.stage, [QUEUE]).items()}

    def _runs(self) -> Runs:
        return Runs(spans=self._spans(), versions=self._changing.versions, landed=list(self.books.landed))
