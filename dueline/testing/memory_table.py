"""The table of jobs in memory."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock

from dueline.core import rows
from dueline.core.job import Partition, State
from dueline.core.ports import READ_KEYS, WRITE_ROWS, BatchRead, KeyChange, MoveOutcome, Page, ScheduleChange
from dueline.core.rows import Key, PartitionState, Row
from dueline.core.status import FINAL
from dueline.testing.memory_queue import at_most


class MemoryTable:
    """The table of jobs as a dictionary. `page_rows` is the most that one page holds. Every read is consistent.

    No request is signed, so that none is signed too late.
    """

    def __init__(self, *, page_rows: int = 1000) -> None:
        self._page_rows = page_rows
        self._rows: dict[str, dict[str, Row]] = defaultdict(dict)
        self._orders: dict[str, list[str]] = {}
        self._reserving = Lock()

    def write(self, written: Sequence[Row], *, signed_before: datetime | None = None) -> list[Row]:
        at_most(WRITE_ROWS, written, "rows in one write")
        _distinct([rows.key(row) for row in written])
        for row in written:
            self._put(row)
        return []

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> BatchRead:
        at_most(READ_KEYS, keys, "keys in one read")
        _distinct(keys)
        return BatchRead(rows={(pk, sk): self._rows[pk][sk] for pk, sk in keys if sk in self._rows[pk]})

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        return self._page(str(partition), after=after, until=until, limit=limit)

    def outcomes(self, partition: Partition, *, after: str, until: str, limit: int) -> Page:
        return self._page(rows.outcomes_of(partition), after=after, until=until, limit=limit, last_first=True)

    def _page(self, pk: str, *, after: str, until: str, limit: int | None, last_first: bool = False) -> Page:
        items, order = self._rows[pk], self._order_of(pk)
        start, end = bisect_right(order, after), bisect_right(order, until)
        most = self._page_rows if limit is None else min(self._page_rows, limit)
        chosen = order[max(start, end - most) : end][::-1] if last_first else order[start : min(end, start + most)]
        return Page(rows=[items[key] for key in chosen], more=end - start > most)

    def add(self, row: Row, *, signed_before: datetime | None = None) -> Row:
        if not self._row(rows.key(row)):
            self._put(row)
        return self._row(rows.key(row))

    def claim(self, row: Row, *, now: datetime) -> Row:
        if not rows.is_live(self._row(rows.key(row)) or None, now=now):
            self._put(row)
        return self._row(rows.key(row))

    def take_over(self, row: Row, *, there: Row) -> bool:
        now = self._row(rows.key(row))
        is_as_read = all(now.get(name) == there.get(name) for name in ("id", "done", "calls"))
        if is_as_read:
            self._put(row)
        return is_as_read

    def record(self, row: Row) -> bool:
        is_news = _is_news(row, self._row(rows.key(row)))
        if is_news:
            self._put(row)
        return is_news

    def share(self, key: Key, *, id: str) -> bool:
        row = self._row(key)
        is_claimed = row.get("id") == id and "released" not in row
        if is_claimed:
            self._mark(key, "shared")
        return is_claimed

    def release(self, key: Key, *, id: str, ttl: int) -> bool:
        row = self._row(key)
        is_alone = row.get("id") == id and row.get("done") is False and "shared" not in row
        if is_alone:
            self._put({**row, "released": True, "ttl": ttl})
        return is_alone

    def mark_done(self, key: Key, *, id: str) -> bool:
        is_its = self._row(key).get("id") == id
        if is_its:
            self._mark(key, "done")
        return is_its

    def change_calls(self, key: Key, *, before: str, after: str) -> bool:
        row = self._row(key)
        is_as_before = row.get("calls") == before
        if is_as_before:
            self._put({**row, "calls": after})
        return is_as_before

    def mark_exact(self, key: Key) -> None:
        self._mark(key, "exact")

    def read_barrier(self, key: Key) -> Row | None:
        return self._row(key) or None

    def move(
        self, cancellation: Row, job: Row, *, state: Key, fence_below: str, change: KeyChange | None = None
    ) -> MoveOutcome:
        changed = [] if change is None else [rows.key(change.row)]
        _distinct([rows.key(cancellation), rows.key(job), state, *changed])
        fence = rows.read_state(self._row(state)).fence
        if fence >= fence_below or self._row(rows.key(cancellation)):
            return MoveOutcome.REFUSED
        if change is not None:
            there = self._row(rows.key(change.row))
            has_changed = "calls" in change.row and there.get("calls", "") != change.before
            if there.get("id") != change.expected or has_changed:
                return MoveOutcome.KEY_CHANGED
            kept = {name: value for name, value in there.items() if name not in ("shared", "released")}
            self._put({**kept, **change.row})
        self._put(cancellation)
        self._put(job)
        return MoveOutcome.DONE

    def change(self, change: ScheduleChange) -> bool:
        at_most(rows.CHANGE_CANCELLATIONS, change.cancellations, "cancellations in one change")
        _distinct([rows.key(row) for row in change.cancellations])
        takes_effect = self._is_as_read(change) and self._has_room(change) and self._is_below(change)
        if takes_effect:
            self._put(change.head)
            for row in change.cancellations:
                self._put({**row, **self._row(rows.key(row)), "exact": True})
            if change.counted:
                pk, sk = change.counter
                self._put({"pk": pk, "sk": sk, "count": self._count(change) + change.counted})
        return takes_effect

    def plan(self, key: Key, *, generation: int, planned_to: str, to: str) -> bool:
        head = self._row(key)
        is_as_read = (head.get("generation"), head.get("planned_to")) == (generation, planned_to)
        if is_as_read:
            self._put({**head, "planned_to": to})
        return is_as_read

    def heads(self, queue: str, *, after: str, limit: int) -> Page:
        return self._page(rows.schedules_of(queue), after=max(after, rows.BEFORE_HEADS), until="~", limit=limit)

    def _is_as_read(self, change: ScheduleChange) -> bool:
        head = self._row(rows.key(change.head))
        if not head:
            return not change.generation
        return (head["generation"], head["planned_to"]) == (change.generation, change.planned_to)

    def _has_room(self, change: ScheduleChange) -> bool:
        return change.counted <= 0 or self._count(change) < rows.MOST_SCHEDULES

    def _count(self, change: ScheduleChange) -> int:
        return int(self._row(change.counter).get("count", 0))

    def _is_below(self, change: ScheduleChange) -> bool:
        return change.state is None or rows.read_state(self._row(change.state)).fence < change.fence_below

    def acquire_lease(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        state = self._state(partition)
        if state.fence <= fence and (state.owner in ("", owner) or state.lease <= now):
            state = PartitionState(fence=fence, cursor=state.cursor, owner=owner, lease=lease)
            self._put_state(partition, state)
        return state

    def checkpoint(
        self, partition: Partition, *, owner: str, cursor: str, fence: str, lease: str, now: str = ""
    ) -> bool:
        state = self._state(partition)
        kept = state.owner == owner and state.cursor <= cursor and state.fence <= fence
        if kept:
            holder = owner if lease else ""
            self._put_state(partition, PartitionState(fence=fence, cursor=cursor, owner=holder, lease=lease))
        return kept

    def reserve(self, key: Key, *, now: int, amount: int, ttl: int) -> int:
        pk, sk = key
        with self._reserving:
            row = self._rows[pk].get(sk, {"pk": pk, "sk": sk})
            until = max(int(row.get("until", now)), now) + amount
            self._put({**row, "until": until, "ttl": ttl})
        return until

    def all(self) -> list[Row]:
        """Return all rows."""
        return [row for items in self._rows.values() for row in items.values()]

    def expired(self, *, now: datetime) -> list[Key]:
        """Return the keys of the rows that are past their TTL."""
        return [rows.key(row) for row in self.all() if "ttl" in row and not rows.is_live(row, now=now)]

    def collect(self, keys: Iterable[Key]) -> None:
        """Delete rows, as DynamoDB does in its own time with those past their TTL."""
        for pk, sk in keys:
            self._rows[pk].pop(sk, None)
            self._orders.pop(pk, None)

    def _mark(self, key: Key, name: str) -> None:
        if row := self._row(key):
            self._put({**row, name: True})

    def _state(self, partition: Partition) -> PartitionState:
        return rows.read_state(self._row(rows.state_key(partition)))

    def _put_state(self, partition: Partition, state: PartitionState) -> None:
        pk, sk = rows.state_key(partition)
        held = {"owner": state.owner, "lease": state.lease} if state.owner else {}
        self._put({"pk": pk, "sk": sk, "fence": state.fence, "cursor": state.cursor, **held})

    def _row(self, key: Key) -> Row:
        """Return a row, empty where there is none."""
        pk, sk = key
        return self._rows[pk].get(sk, {})

    def _put(self, row: Row) -> None:
        pk, sk = rows.key(row)
        self._rows[pk][sk] = row

    def _order_of(self, pk: str) -> list[str]:
        """Return a partition's sort keys in order, sorted again when there are more of them: not for each page."""
        order = self._orders.get(pk, [])
        if len(order) != len(self._rows[pk]):
            order = self._orders[pk] = sorted(self._rows[pk])
        return order


def _is_news(row: Row, there: Row) -> bool:
    """Return whether an outcome is to be put over another, if there is one, as Table.record has it."""
    if not there:
        return True
    if there["state"] == State.SUCCEEDED and row["state"] == State.SKIPPED:
        return False
    if int(there["attempts"]) < int(row["attempts"]):
        return True
    if there["attempts"] == row["attempts"] and there["state"] not in FINAL:
        return True
    return there["state"] != State.SUCCEEDED and str(there["started"]) < str(row["started"])


def _distinct(keys: Sequence[Key]) -> None:
    if len(set(keys)) < len(keys):
        raise ValueError("a key is named twice: AWS refuses the whole call")
