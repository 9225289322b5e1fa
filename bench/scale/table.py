"""DynamoDB as a model: one partition's rows, what its key takes a second, and how long a request takes."""

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from bench.scale.parameters import DynamoDb, Latency
from bench.scale.turns import Environment
from bench.units import read_units, write_units
from dueline.errors import Throttled, Unavailable
from dueline.memory import MemoryTable
from dueline.model import rows
from dueline.model.job import Partition
from dueline.model.rows import Key, PartitionState, Row
from dueline.ports import Page, Reading

Answer = TypeVar("Answer")
# As the functions' clients do: botocore's standard mode tries twice, with a wait of up to a second.
_ATTEMPTS = 2


class Allowance:
    """So many units a second (a token bucket), of which `burst_seconds` are kept where they are not used."""

    def __init__(self, rate: float, *, burst_seconds: float) -> None:
        self.rate = rate
        self._most = rate * burst_seconds
        self._left, self._at = self._most, 0.0

    def take(self, units: float, *, now: float) -> bool:
        """Take all of so many units, or none; tell whether they were there."""
        self._left = min(self._most, self._left + (now - self._at) * self.rate)
        self._at = now
        if units > self._left:
            return False
        self._left -= units
        return True


class Storage:
    """The rows of one partition, each as if it had `row_bytes`. What is due after `horizon` is not kept."""

    def __init__(self, model: DynamoDb, *, row_bytes: int, horizon: str) -> None:
        self.model, self.row_bytes, self.horizon = model, row_bytes, horizon
        rate = model.splits * model.writes_per_key
        self.writes = Allowance(rate, burst_seconds=model.burst_seconds)
        self.reads = Allowance(model.splits * model.reads_per_key, burst_seconds=model.burst_seconds)
        self.page_rows = max(1, model.page_bytes // row_bytes)
        self.state = MemoryTable()
        self._keys: list[str] = []
        self._rows: dict[str, Row] = {}

    def put(self, row: Row) -> None:
        """Put a row, whatever its key takes a second."""
        key = str(row["sk"])
        if key < self.horizon:
            if key not in self._rows:
                insort(self._keys, key)
            self._rows[key] = row

    def units(self, row: Row) -> int:
        return write_units(self.row_bytes) if str(row["sk"]).endswith(rows.JOB) else 1

    def between(self, after: str, until: str) -> Page:
        start, end = bisect_right(self._keys, after), bisect_right(self._keys, until)
        keys = self._keys[start : min(end, start + self.page_rows)]
        return Page(rows=[self._rows[key] for key in keys], more=end - start > len(keys))

    def forget(self, cursor: str) -> None:
        """Forget the rows that no tick reads again."""
        end = bisect_right(self._keys, cursor)
        for key in self._keys[:end]:
            del self._rows[key]
        del self._keys[:end]


class TablePort:
    """What the tick and ingest ask of a Table, as one process has it.

    `cpu` is what a written row takes, in seconds of a vCPU, `most` the longest that a request may take.
    """

    def __init__(
        self, storage: Storage, *, at: Environment, random: Random, is_down: Callable[[], bool], cpu: float, most: float
    ) -> None:
        self._storage, self._at, self._random = storage, at, random
        self._is_down, self._cpu, self._most = is_down, cpu, most

    def write(self, written: Sequence[Row]) -> list[Row]:
        self._at.compute(self._cpu * len(written))
        return self._ask(self._storage.model.write, lambda: self._write(written))

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> Reading:
        return self._ask(self._storage.model.read, lambda: self._read(keys))

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        return self._ask(self._storage.model.page, lambda: self._page(after, until))

    def take(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        state = self._storage.state
        return self._update(lambda: state.take(partition, owner=owner, now=now, lease=lease, fence=fence))

    def checkpoint(self, partition: Partition, *, owner: str, cursor: str, fence: str, lease: str) -> bool:
        state = self._storage.state
        kept = self._update(lambda: state.checkpoint(partition, owner=owner, cursor=cursor, fence=fence, lease=lease))
        if kept:
            self._storage.forget(cursor)
        return kept

    def _update(self, change: Callable[[], Answer]) -> Answer:
        now = self._at.monotonic
        return self._ask(
            self._storage.model.update, lambda: change() if self._storage.writes.take(1, now=now()) else None
        )

    def _write(self, written: Sequence[Row]) -> list[Row] | None:
        """Put the rows for which there are units left; nothing if there are none at all."""
        storage, left = self._storage, []
        for row in written:
            if storage.writes.take(storage.units(row), now=self._at.monotonic()):
                storage.put(row)
            else:
                left.append(row)
        return None if len(left) == len(written) else left

    def _read(self, keys: Sequence[Key]) -> Reading | None:
        is_allowed = self._storage.reads.take(len(keys), now=self._at.monotonic())
        return self._storage.state.read(keys) if is_allowed else None

    def _page(self, after: str, until: str) -> Page | None:
        page = self._storage.between(after, until)
        units = read_units(len(page.rows) * self._storage.row_bytes)
        return page if self._storage.reads.take(units, now=self._at.monotonic()) else None

    def _ask(self, latency: Latency, answer: Callable[[], Answer | None]) -> Answer:
        """Answer after a while, at the second attempt if DynamoDB refuses the first. Raises Throttled, Unavailable."""
        is_down = False
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._at.sleep(self._random.random())
            self._at.sleep(min(latency.draw(self._random), self._most))
            is_down = self._is_down()
            told = None if is_down else answer()
            if told is not None:
                return told
        raise Unavailable("the table is down") if is_down else Throttled("the key takes no more")
