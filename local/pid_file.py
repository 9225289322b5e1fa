"""The PID file of the process that is up, which holds it locked for as long as it lives.

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
def pid_file(path: Path) -> Iterator[None]:
    """Keep this process's id in a file, locked, while the context is open.

    Raises AlreadyUp when another process holds the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        while not _is_locked_by_us(file, LOCK_EX):
            # Nobody: it was a reader that looked whether it is held.
            if (pid := pid_of(path)) is not None:
                raise AlreadyUp(f"it is up already, as process {pid}: end that with `make down`")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def pid_of(path: Path) -> int | None:
    """Return the id of the process that holds a PID file, if one does."""
    try:
        with path.open() as file:
            return None if _is_locked_by_us(file, LOCK_SH) else int(file.read())
    except (FileNotFoundError, ValueError):
        return None


def _is_locked_by_us(file: IO[str], how: int) -> bool:
    try:
        flock(file, how | LOCK_NB)
    except BlockingIOError:
        return False
    return True
