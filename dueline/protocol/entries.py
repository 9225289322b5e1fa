"""Entries: what a tick reads of a partition, paired by job, and asked for where a move may not be seen yet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dueline.errors import RETRYABLE, InvalidJob
from dueline.model import rows
from dueline.model.job import Job
from dueline.model.move_rows import ASKED, AWAITED
from dueline.model.rows import Key, Row
from dueline.ports import Spread


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreadable:
    """A job's row that cannot be read, and why."""

    row: Row
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A job's row in reading order; None if the job was cancelled or handled before, or is awaited.

    `may_be_moved`: a move of it was asked for, of which no cancellation was read. `may_be_there`: it was to take
    another's place, and no row of it was read.
    """

    key: str
    row: Row | None
    may_be_moved: bool = False
    may_be_there: bool = False

    @property
    def job(self) -> Job | Unreadable | None:
        """What is to be handed over, read each time: all the payloads of a page, unpacked, may be hundreds of MB."""
        try:
            return None if self.row is None else rows.read_job(self.row)
        except InvalidJob as error:
            return Unreadable(row=self.row or {}, reason=str(error))


class Entries:
    """Pairs each job's row with what stands before it, which may be on an earlier page.

    That is its cancellation or the late path's note, by which it is settled, or that a move was asked for.
    """

    def __init__(self) -> None:
        self._settled = self._asked = self._awaited = ""

    def of(self, page: Sequence[Row], *, more: bool = False) -> list[Entry]:
        """Return the entries of a page; without `more`, also that of a job that is awaited since the last row."""
        entries: list[Entry] = []
        for row in page:
            prefix, kind = rows.prefix_and_kind(str(row["sk"]))
            entries += self._missed(before=prefix)
            entries += self._met(row, prefix, kind)
        return entries if more else [*entries, *self._missed()]

    def _met(self, row: Row, prefix: str, kind: str) -> Iterator[Entry]:
        if kind == ASKED:
            self._asked = prefix
        elif kind == AWAITED:
            self._awaited = prefix
        elif kind in (rows.CANCELLED, rows.HANDLED):
            self._settled, self._awaited = prefix, ""
        elif kind == rows.JOB:
            is_settled, self._awaited = prefix == self._settled, ""
            may_be_moved = prefix == self._asked and not is_settled
            yield Entry(key=str(row["sk"]), row=None if is_settled else row, may_be_moved=may_be_moved)

    def _missed(self, *, before: str = "") -> Iterator[Entry]:
        """Yield the job that was awaited and did not come, where reading goes on with another."""
        awaited = self._awaited
        if awaited and awaited != before:
            self._awaited = ""
            yield Entry(key=f"{awaited}#{rows.JOB}", row=None, may_be_moved=awaited == self._asked, may_be_there=True)


def asked_for(
    entries: Iterable[Entry], *, pk: str, ask_for: Callable[[Key], Row | None], spread: Spread
) -> tuple[dict[str, Entry], dict[str, str]]:
    """Ask for what a read may not show of the entries of moves.

    Return these as they are, and the keys of those of which that is not known, each with why. Once the fence is past
    them, what is found stays so: no move succeeds any more.
    """

    def ask(entry: Entry) -> Entry | str:
        try:
            return _asked_for(entry, pk, ask_for)
        except RETRYABLE as fault:
            return str(fault)

    unsure = [each for each in entries if each.may_be_moved or each.may_be_there]
    answers = {each.key: answer for each, answer in zip(unsure, spread(ask, unsure), strict=True)}
    known = {key: answer for key, answer in answers.items() if isinstance(answer, Entry)}
    return known, {key: answer for key, answer in answers.items() if isinstance(answer, str)}


def _asked_for(entry: Entry, pk: str, ask_for: Callable[[Key], Row | None]) -> Entry:
    row = ask_for((pk, entry.key)) if entry.may_be_there else entry.row
    prefix, _ = rows.prefix_and_kind(entry.key)
    is_moved = row is not None and entry.may_be_moved and ask_for((pk, f"{prefix}#{rows.CANCELLED}")) is not None
    return replace(entry, row=None if is_moved else row)
