"""Payloads, one a line: checked and kept in a file until they are sent, and those that were not, kept in another."""

import errno
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from dueline.cli import options

_HELD_BYTES = 8_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """The lines of a file that have a payload, with their numbers, as often as they are asked for; none is held.

    There are `count` of them, and `last` is the number of the last.
    """

    kept: IO[bytes]
    count: int
    last: int

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line; one iteration ends the one before."""
        self.kept.seek(0)
        return ((number, line) for number, line in enumerate(self.kept, start=1) if not options.is_blank(line))


@contextmanager
def lines_of(text: str) -> Iterator[Lines]:
    """Read the lines on stdin or in a file. Raises typer.BadParameter for one that is no JSON, before any is used."""
    with SpooledTemporaryFile(_HELD_BYTES) as kept:
        count = last = 0
        with options.source(text) as source:
            for number, line in enumerate(source, start=1):
                kept.write(line)
                if not options.is_blank(line):
                    options.line(line, number)
                    count, last = count + 1, number
        yield Lines(kept=kept, count=count, last=last)


class Left:
    """The lines that were not scheduled, in a new file for their owner's eyes alone, whole or not there at all.

    Each has its old number, to which its key belongs: those in between are blank. Without a file to write to, `fault`
    says why.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.fault: OSError | None = None

    @classmethod
    def at(cls, now: datetime) -> "Left":
        """Return one in the current directory, named after an instant."""
        return cls(Path(f"dueline-left-{now.astimezone(UTC):%Y%m%dT%H%M%S-%f}.jsonl"))

    def keep(self, lines: Iterable[tuple[int, bytes]], *, count: int) -> None:
        """Write so many lines, whose numbers rise. Without any there is no file."""
        self.count = count
        if not count:
            return
        unfinished = self.path.with_name(f"{self.path.name}.{uuid.uuid4().hex}")
        try:
            _write(unfinished, lines)
            if self.path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            unfinished.rename(self.path)
        except OSError as fault:
            self.fault = fault
            with suppress(OSError):
                unfinished.unlink()


def _write(path: Path, lines: Iterable[tuple[int, bytes]]) -> None:
    with open(path, "xb", opener=partial(os.open, mode=0o600)) as file:
        last = 0
        for number, line in lines:
            file.write(b"\n" * (number - last - 1) + line.rstrip(b"\r\n") + b"\n")
            last = number
