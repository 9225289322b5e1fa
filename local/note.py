"""The note of who is up: a file with a process id, which that process holds locked for as long as it lives.

A lock ends with its process, however that ends; a process id that was left behind may be anybody's by now.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from typing import IO


class AlreadyUp(RuntimeError):
    """Another process is up; the message says which."""


@contextmanager
def noted_as_up(path: Path) -> Iterator[None]:
    """Leave a note of this process while the context is open. Raises AlreadyUp when another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as note:
        while not _is_locked_by_us(note, LOCK_EX):
            # Nobody: it was a reader that looked whether it is held.
            if (pid := pid_of(path)) is not None:
                raise AlreadyUp(f"it is up already, as process {pid}: end that with `make down`")
        note.truncate(0)
        note.write(str(os.getpid()))
        note.flush()
        try:
            yield
        finally:
            note.truncate(0)


def pid_of(path: Path) -> int | None:
    """Return the process that holds a note, if one does."""
    try:
        with path.open() as note:
            return None if _is_locked_by_us(note, LOCK_SH) else int(note.read())
    except (FileNotFoundError, ValueError):
        return None


def _is_locked_by_us(note: IO[str], how: int) -> bool:
    try:
        flock(note, how | LOCK_NB)
    except BlockingIOError:
        return False
    return True
