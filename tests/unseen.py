"""A table in memory that does not show rows yet, as while the transaction that put them is not over."""

from collections.abc import Sequence

from dueline.core.ports import BatchRead
from dueline.core.rows import Key
from dueline.testing import MemoryTable


class UnseenTable(MemoryTable):
    """Reads and queries do not show a row whose sort key has one of the endings `unseen`; what writes meets it."""

    unseen: tuple[str, ...] = ()

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> BatchRead:
        reading = super().read(keys, consistent=consistent)
        return BatchRead(rows={key: row for key, row in reading.rows.items() if not key[1].endswith(self.unseen)})

    def _order_of(self, pk: str) -> list[str]:
        order = super()._order_of(pk)
        return [key for key in order if not key.endswith(self.unseen)] if self.unseen else order
