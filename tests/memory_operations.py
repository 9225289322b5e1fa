"""What restoring and the TTL guard need of a table, in memory."""

import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from dueline.core import rows
from dueline.core.ports import BatchRead, Clock
from dueline.core.rows import Key, Row
from dueline.errors import NotYet
from dueline.operations.restore import Part
from dueline.testing import MemoryTable


class MemoryBackup:
    """A copy of what a table in memory holds now. `part_rows` is the most that one answer holds."""

    def __init__(self, table: MemoryTable, *, name: str = "backup", part_rows: int = 200) -> None:
        self.name = name
        self._part_rows = part_rows
        self._rows: dict[Key, Row] = {rows.key(row): row for row in table.all()}

    def jobs(self, segment: int, *, of: int, after: Key | None) -> Part:
        every = (key for key in self._rows if not rows.in_state_table(key))
        return self._part((key for key in every if zlib.crc32(key[0].encode()) % of == segment), after)

    def states(self, *, after: Key | None) -> Part:
        return self._part((key for key in self._rows if rows.in_state_table(key)), after)

    def read(self, keys: Sequence[Key]) -> BatchRead:
        return BatchRead(rows={key: self._rows[key] for key in keys if key in self._rows})

    def count(self) -> int:
        return len(self._rows)

    def _part(self, keys: Iterable[Key], after: Key | None) -> Part:
        left: list[Any] = sorted(key for key in keys if after is None or key > after)
        chosen = left[: self._part_rows]
        return Part(rows=[self._rows[key] for key in chosen], after=chosen[-1] if len(left) > len(chosen) else None)


class MemoryTimeToLive:
    """TTL, which can be switched once in `takes`, and may go on to collect for that long after it was switched off."""

    def __init__(self, *, clock: Clock, takes: timedelta = timedelta(hours=1)) -> None:
        self._clock = clock
        self._takes = takes
        self._is_on = True
        self._settled: datetime | None = None

    @property
    def collects(self) -> bool:
        """Whether a row past its TTL may be collected now."""
        return self._is_on or self._is_settling()

    def is_on(self) -> bool:
        return self._is_on

    def switch(self, *, on: bool) -> None:
        if on == self._is_on:
            return
        if self._is_settling():
            raise NotYet("TTL was switched within the last hour")
        self._is_on, self._settled = on, self._clock.now() + self._takes

    def _is_settling(self) -> bool:
        return self._settled is not None and self._clock.now() < self._settled
