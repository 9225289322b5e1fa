"""DynamoDB as a model: the rows of partitions, what a key and a table take a second, how long a request takes."""

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
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
    """The rows of one partition, each as if it had `row_bytes`. What is due after `horizon` is not kept.

    What is updated is in a table of its own, with a key of its own: `state_writes` and `state_reads` are what that
    takes. `table` is what the jobs table takes in all, if that is limited.
    """

    def __init__(self, model: DynamoDb, *, row_bytes: int, horizon: str, table: Allowance | None = None) -> None:
        self.model, self.row_bytes, self.horizon, self.table = model, row_bytes, horizon, table
        rate, burst = model.splits * model.writes_per_key, model.burst_seconds
        self.writes = Allowance(rate, burst_seconds=burst)
        self.reads = Allowance(model.splits * model.reads_per_key, burst_seconds=burst)
        self.state_writes = Allowance(model.writes_per_key, burst_seconds=burst)
        self.state_reads = Allowance(model.reads_per_key, burst_seconds=burst)
        self.page_rows = max(1, model.page_bytes // row_bytes)
        self.state = MemoryTable()
        self._keys: list[str] = []
        self._rows: dict[str, Row] = {}

    def takes(self, row: Row, *, now: float) -> bool:
        """Tell whether a row may be written now, and count it if so."""
        units = self.units(row)
        return (self.table is None or self.table.take(units, now=now)) and self.writes.take(units, now=now)

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
    """What ticks, ingest and those who submit ask of a Table, as one process has it; `storages` are by partition key.

    `cpu` is what a written row takes, in seconds of a vCPU, `most` the longest that a request may take.
    """

    def __init__(
        self,
        model: DynamoDb,
        storages: Mapping[str, Storage],
        *,
        at: Environment,
        random: Random,
        is_down: Callable[[], bool],
        cpu: float,
        most: float,
    ) -> None:
        self._model, self._storages, self._at, self._random = model, storages, at, random
        self._is_down, self._cpu, self._most = is_down, cpu, most

    def write(self, written: Sequence[Row]) -> list[Row]:
        self._at.compute(self._cpu * len(written))
        return self._ask(self._model.write, lambda: self._write(written))

    def add(self, row: Row) -> Row:
        """Put a row, whose id is nobody else's."""
        self.write([row])
        return row

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> Reading:
        return self._ask(self._model.read, lambda: self._read(keys))

    def page(
        self, partition: Partition, *, after: str, until: str, consistent: bool = True, limit: int | None = None
    ) -> Page:
        return self._ask(self._model.page, lambda: self._page(self._storages[str(partition)], after, until))

    def take(self, partition: Partition, *, owner: str, now: str, lease: str, fence: str) -> PartitionState:
        storage = self._storages[str(partition)]
        return self._update(
            storage, lambda: storage.state.take(partition, owner=owner, now=now, lease=lease, fence=fence)
        )

    def checkpoint(self, partition: Partition, *, owner: str, cursor: str, fence: str, lease: str) -> bool:
        storage = self._storages[str(partition)]
        kept = self._update(
            storage,
            lambda: storage.state.checkpoint(partition, owner=owner, cursor=cursor, fence=fence, lease=lease),
        )
        if kept:
            storage.forget(cursor)
        return kept

    def _update(self, storage: Storage, change: Callable[[], Answer]) -> Answer:
        return self._ask(
            self._model.update, lambda: change() if storage.state_writes.take(1, now=self._at.monotonic()) else None
        )

    def _write(self, written: Sequence[Row]) -> list[Row] | None:
        """Put the rows for which there are units left; nothing if there are none at all."""
        left = []
        for row in written:
            storage = self._storages[str(row["pk"])]
            if storage.takes(row, now=self._at.monotonic()):
                storage.put(row)
            else:
                left.append(row)
        return None if len(left) == len(written) else left

    def _read(self, keys: Sequence[Key]) -> Reading | None:
        """Read states, or else cancellations, of which there are none."""
        found: dict[Key, Row] = {}
        for key in keys:
            storage = self._storages[key[0]]
            of_state = rows.in_state_table(key)
            allowed = storage.state_reads if of_state else storage.reads
            if not allowed.take(1, now=self._at.monotonic()):
                return None
            if of_state:
                found |= storage.state.read([key]).rows
        return Reading(rows=found)

    def _page(self, storage: Storage, after: str, until: str) -> Page | None:
        page = storage.between(after, until)
        units = read_units(len(page.rows) * storage.row_bytes)
        return page if storage.reads.take(units, now=self._at.monotonic()) else None

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
