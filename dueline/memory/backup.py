"""A backup in memory."""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from dueline.memory.table import MemoryTable
from dueline.model import rows
from dueline.model.rows import Key, Row
from dueline.operate.backup import Part
from dueline.ports import Reading


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

    def read(self, keys: Sequence[Key]) -> Reading:
        return Reading(rows={key: self._rows[key] for key in keys if key in self._rows})

    def count(self) -> int:
        return len(self._rows)

    def _part(self, keys: Iterable[Key], after: Key | None) -> Part:
        left: list[Any] = sorted(key for key in keys if after is None or key > after)
        chosen = left[: self._part_rows]
        return Part(rows=[self._rows[key] for key in chosen], after=chosen[-1] if len(left) > len(chosen) else None)
