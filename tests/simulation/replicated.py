"""A table with a replica that lags behind, which answers the reads that do not ask for consistency."""

from collections.abc import Callable
from typing import Any

from dueline.memory import MemoryTable

READS = ("read", "page")
WRITES = (
    "write",
    "add",
    "record",
    "move",
    "claim",
    "mark_done",
    "mark_exact",
    "take",
    "checkpoint",
    "reserve",
    "collect",
)


class ReplicatedTable:
    """`lag` tells how many of the last writes such a read does not see."""

    def __init__(self, *, page_rows: int, lag: Callable[[], int]) -> None:
        self._leader, self._replica = MemoryTable(page_rows=page_rows), MemoryTable(page_rows=page_rows)
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
            return getattr(self._leader if consistent else self._replica, name)(*args, **kwargs)

        return read

    def _write(self, name: str) -> Callable[..., Any]:
        assert name in WRITES, name
        on_leader, on_replica = getattr(self._leader, name), getattr(self._replica, name)

        def write(*args: Any, **kwargs: Any) -> Any:
            self._unseen.append(lambda: on_replica(*args, **kwargs))
            return on_leader(*args, **kwargs)

        return write

    def _catch_up(self, lag: int) -> None:
        while len(self._unseen) > lag:
            self._unseen.pop(0)()
