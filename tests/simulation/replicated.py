"""A table with a replica that lags behind, and transactions whose rows are seen one by one.

The replica answers the reads that do not ask for consistency. Of a move that is not answered, no read needs to show a
row, or may show the one and not the other; so it is with a change's cancellations, and
its head, in whose place the one of before is shown. What writes meets all of it.
"""

from collections.abc import Callable
from typing import Any

from dueline.memory import MemoryTable
from dueline.model import rows
from dueline.model.rows import Key, Row
from dueline.model.schedule_rows import Change
from dueline.ports import Reading
from tests.unseen import UnseenTable

READS = ("read", "page", "heads")
WRITES = (
    "write",
    "add",
    "record",
    "move",
    "change",
    "plan",
    "claim",
    "mark_done",
    "mark_exact",
    "take",
    "checkpoint",
    "reserve",
    "collect",
)


class ReplicatedTable:
    """`lag` tells how many of the last writes such a read does not see, `late` how many reads one row of a transaction.

    The head of a change, if it is late, is so until it is met.
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

    def _as_before(self, reading: Reading) -> Reading:
        """Show the heads of changes that are not seen yet as they were before, or not at all."""
        shown = {key: self._before.get(key, row) for key, row in reading.rows.items()}
        return Reading(rows={key: row for key, row in shown.items() if row is not None}, unread=reading.unread)

    def _write(self, name: str) -> Callable[..., Any]:
        assert name in WRITES, name
        on_leader, on_replica = getattr(self._leader, name), getattr(self._replica, name)

        def write(*args: Any, **kwargs: Any) -> Any:
            self._unseen.append(lambda: on_replica(*args, **kwargs))
            if self._unseen_for and name in ("write", "add"):
                self.show(*map(rows.key, args[0] if name == "write" else args))
            return on_leader(*args, **kwargs)

        return write

    def move(self, cancellation: Row, job: Row, **on: Any) -> bool:
        took_effect: bool = self._write("move")(cancellation, job, **on)
        if took_effect:
            late = {rows.key(row): self._late() for row in (cancellation, job)}
            self._unseen_for |= {key: reads for key, reads in late.items() if reads}
            self._hide()
        return took_effect

    def change(self, change: Change) -> bool:
        head = rows.key(change.head)
        self._before.pop(head, None)
        before = self._leader.read([head]).rows.get(head)
        took_effect: bool = self._write("change")(change)
        if took_effect:
            late = {rows.key(row): self._late() for row in change.cancellations}
            self._unseen_for |= {key: reads for key, reads in late.items() if reads}
            if self._late():
                self._before[head] = before
            self._hide()
        return took_effect

    def plan(self, key: Key, **on: Any) -> bool:
        self._before.pop(key, None)
        is_as_read: bool = self._write("plan")(key, **on)
        return is_as_read

    def is_seen(self, head: Key) -> bool:
        return head not in self._before

    def ask_for(self, key: Key) -> Row | None:
        self.show(key)
        return self._leader.ask_for(key)

    def show(self, *keys: Key) -> None:
        """Show rows of transactions, or all of them."""
        self._before = {key: row for key, row in self._before.items() if keys and key not in keys}
        self._unseen_for = {key: reads for key, reads in self._unseen_for.items() if keys and key not in keys}
        self._hide()

    def _show_some(self) -> None:
        """Bring all rows of moves one read nearer to where they are seen."""
        if self._unseen_for:
            self._hide()
            self._unseen_for = {key: reads - 1 for key, reads in self._unseen_for.items() if reads > 1}

    def _hide(self) -> None:
        self._leader.unseen = tuple(key for _, key in self._unseen_for)

    def _catch_up(self, lag: int) -> None:
        while len(self._unseen) > lag:
            self._unseen.pop(0)()
