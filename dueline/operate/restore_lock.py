"""One restore of a backup at a time: of two, one could take a row of the other's for one that was seen to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol, TypeVar

from dueline.errors import NotYet, Unavailable
from dueline.model import instant
from dueline.model.restore_rows import lock_row
from dueline.model.rows import Row, key
from dueline.operate.backup import read_whole
from dueline.ports import Clock, Table

# Longer than a step takes that waits for a tick. A run that is killed keeps others out for so long.
LASTS = timedelta(minutes=10)
A = TypeVar("A")


class Ask(Protocol):
    """Makes a call."""

    def __call__(self, call: Callable[[], A], /) -> A: ...


class RestoreLock:
    """The lock of a backup, in the table of jobs. `owner` is unique to the run."""

    def __init__(self, backup: str, *, owner: str, table: Table, clock: Clock, ask: Ask) -> None:
        self._backup, self._owner = backup, owner
        self._table, self._clock, self._ask = table, clock, ask

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the lock meanwhile. Raises NotYet where another run has it."""
        self._check(self._ask(lambda: self._table.claim(self._row(LASTS), now=self._clock.now())))
        try:
            yield
        finally:
            if self._read()["owner"] == self._owner:
                self._write(timedelta(0))

    def renew(self) -> None:
        """Have it for longer. Raises NotYet where it was lost, because nothing was heard of this run for so long."""
        self._check(self._read())
        self._write(LASTS)

    def _read(self) -> Row:
        own = self._row(LASTS)
        return self._ask(lambda: read_whole(self._table, [key(own)])).rows.get(key(own), own)

    def _check(self, there: Row) -> None:
        if there["owner"] != self._owner:
            until = instant.text(instant.from_epoch_ms(1000 * int(there["ttl"])))
            raise NotYet(f"another run takes over {self._backup}, or was killed: try again from {until} on")

    def _row(self, lasts: timedelta) -> Row:
        return lock_row(self._backup, owner=self._owner, until=self._clock.now() + lasts)

    def _write(self, lasts: timedelta) -> None:
        def write() -> None:
            if self._table.write([self._row(lasts)]):
                raise Unavailable("the lock of a restore was left unwritten: try again")

        self._ask(write)
