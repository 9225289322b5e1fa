"""The stores of a world: a table whose reads may be stale, and queues from their consumers' side.

A replica that lags behind answers the reads that are not consistent. Of a transaction that is not answered yet, a read
may show nothing, all, or one row without another: of a move, of a change's cancellations, and of its head, in whose
place the one before is shown. Writes meet all of it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from dueline.core import rows
from dueline.core.job import StoredJob
from dueline.core.message import Message
from dueline.core.ports import BatchRead, Clock, KeyChange, MoveOutcome, ScheduleChange
from dueline.core.rows import Key, Row
from dueline.testing import MemoryQueue, MemoryTable
from tests.wire import UnseenTable

# All else writes.
READS = ("read", "page", "heads")
MEETS_ONE_ROW = ("claim", "take_over", "share", "release", "mark_done", "change_calls", "plan")


class ReplicatedTable:
    """`lag` returns how many of the last writes a stale read misses, `late` how many reads one row of a transaction.

    The head of a change, if it is late, is so until a write meets it.
    """

    def __init__(self, *, page_rows: int, lag: Callable[[], int], late: Callable[[], int] = lambda: 0) -> None:
        self._leader, self._replica = UnseenTable(page_rows=page_rows), MemoryTable(page_rows=page_rows)
        self._late, self._unseen_for = late, dict[Key, int]()
        self._before: dict[Key, Row | None] = {}
        self._unseen: list[Callable[[], object]] = []
        self._lag = lag
        self.expired = self._leader.expired

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = self._read(name) if name in READS else self._write(name)
        setattr(self, name, method)
        return method

    def _read(self, name: str) -> Callable[..., Any]:
        def read(*args: Any, consistent: bool = True, **kwargs: Any) -> Any:
            if not consistent:
                self._catch_up(self._lag())
            self._show_some()
            answer = getattr(self._leader if consistent else self._replica, name)(*args, **kwargs)
            return self._as_before(answer) if self._before and name == "read" else answer

        return read

    def _as_before(self, reading: BatchRead) -> BatchRead:
        """Show the heads of changes that are not seen yet as they were before, or not at all."""
        shown = {key: self._before.get(key, row) for key, row in reading.rows.items()}
        return BatchRead(rows={key: row for key, row in shown.items() if row is not None}, unread=reading.unread)

    def _write(self, name: str) -> Callable[..., Any]:
        on_leader, on_replica = getattr(self._leader, name), getattr(self._replica, name)

        def write(*args: Any, **kwargs: Any) -> Any:
            # What a write meets, readers see from then on.
            if self._before and name in MEETS_ONE_ROW:
                self._before.pop(args[0] if isinstance(args[0], tuple) else rows.key(args[0]), None)
            self._unseen.append(lambda: on_replica(*args, **kwargs))
            if self._unseen_for and name in ("write", "add"):
                self.show(*map(rows.key, args[0] if name == "write" else args))
            return on_leader(*args, **kwargs)

        return write

    def move(self, cancellation: Row, job: Row, *, change: KeyChange | None = None, **on: Any) -> MoveOutcome:
        if change is not None:
            self._before.pop(rows.key(change.row), None)
        before = {} if change is None else self._leader.read([rows.key(change.row)]).rows
        outcome: MoveOutcome = self._write("move")(cancellation, job, change=change, **on)
        if outcome is MoveOutcome.DONE:
            self._delay((cancellation, job), before)
        return outcome

    def change(self, change: ScheduleChange) -> bool:
        head = rows.key(change.head)
        self._before.pop(head, None)
        before = self._leader.read([head]).rows.get(head)
        took_effect: bool = self._write("change")(change)
        if took_effect:
            self._delay(change.cancellations, {head: before})
        return took_effect

    def _delay(self, written: Sequence[Row], before: Mapping[Key, Row | None]) -> None:
        """Let reads show what a transaction wrote later, each row by itself, and until then what was there before."""
        late = {rows.key(row): self._late() for row in written}
        self._unseen_for |= {key: reads for key, reads in late.items() if reads}
        self._before |= before if self._late() else {}
        self._hide()

    @property
    def existing(self) -> Mapping[str, Mapping[str, Row]]:
        """The rows that there are, by their keys, also those that readers do not see yet."""
        return self._leader._rows

    def is_seen(self, head: Key) -> bool:
        return head not in self._before

    def read_barrier(self, key: Key) -> Row | None:
        self.show(key)
        return self._leader.read_barrier(key)

    def show(self, *keys: Key) -> None:
        """Show rows of transactions, or all of them."""
        self._before = {key: row for key, row in self._before.items() if keys and key not in keys}
        self._unseen_for = {key: reads for key, reads in self._unseen_for.items() if keys and key not in keys}
        self._hide()

    def _show_some(self) -> None:
        """Bring all hidden rows one read nearer to where reads show them."""
        if self._unseen_for:
            self._hide()
            self._unseen_for = {key: reads - 1 for key, reads in self._unseen_for.items() if reads > 1}

    def _hide(self) -> None:
        self._leader.unseen = tuple(key for _, key in self._unseen_for)

    def _catch_up(self, lag: int) -> None:
        while len(self._unseen) > lag:
            self._unseen.pop(0)()


class Consumer:
    """A queue as its consumers see it: at least once, in any order, and again after the visibility timeout.

    Messages are named by their place among all that ever were in it.
    """

    def __init__(self, queue: MemoryQueue, *, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._hidden: dict[int, float] = {}
        self._deleted: set[int] = set()
        self._jobs: dict[int, StoredJob] = {}
        self.first_received: dict[int, datetime] = {}

    def message(self, place: int) -> Message:
        return self._queue.deliveries[place].message

    def job(self, place: int) -> StoredJob:
        """Return the job that a message carries, read once: messages do not change."""
        if place not in self._jobs:
            self._jobs[place] = self.message(place).job()
        return self._jobs[place]

    def visible(self) -> list[int]:
        """Return the messages that are visible now."""
        now, since = self._clock.now(), self._clock.monotonic()
        shown = [place for place in self.undeleted() if self._hidden.get(place, 0) <= since]
        return [place for place in shown if self._queue.deliveries[place].visible <= now]

    def undeleted(self) -> list[int]:
        """Return the messages that are not deleted."""
        return [place for place in range(len(self._queue.deliveries)) if place not in self._deleted]

    def receive(self, *, waiting: Sequence[int], again: Sequence[int] = (), seconds: float) -> list[int]:
        """Hide messages for so long, and return them: of those that wait, and of all that ever were, by number."""
        left, ever = self.visible(), range(len(self._queue.deliveries))
        chosen = [left[number] for number in waiting if number < len(left)]
        chosen += [ever[number] for number in again if number < len(ever)]
        for place in chosen:
            self._hidden[place] = self._clock.monotonic() + seconds
            self.first_received.setdefault(place, self._clock.now())
        return list(dict.fromkeys(chosen))

    def hide(self, place: int, seconds: float) -> None:
        self._hidden[place] = self._clock.monotonic() + seconds

    def delete(self, place: int) -> None:
        self._deleted.add(place)
