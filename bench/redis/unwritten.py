"""What of a file is on the disk, and what in the kernel's memory alone: the latter goes when the machine goes.

A kill -9 of Redis loses nothing that it wrote, because the kernel still has it; the end of its machine does. cachestat
(Linux 6.5, https://man7.org/linux/man-pages/man2/cachestat.2.html) counts the pages that were not written yet.
"""

import ctypes
import os
import platform
from bisect import bisect_left
from pathlib import Path

_CACHESTAT = 451
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CALL = ctypes.CDLL(None, use_errno=True).syscall


class _Range(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cached", "dirty", "in_writeback", "evicted", "lately")]


def written_bytes(path: Path) -> int:
    """Return how long a file that only grows is on the disk: up to the end of the first page that is not.

    Raises OSError where the kernel or the file system does not tell.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        pages = range(-(-size // _PAGE))
        first = bisect_left(pages, True, key=lambda page: _unwritten(file.fileno(), pages=page + 1) > 0)
        return min(size, (first + 1) * _PAGE)


def check_that_it_is_told(folder: Path) -> None:
    """Raise OSError where what is written and what is synced look the same: on a disk of memory, say."""
    if platform.system() != "Linux":
        raise OSError(f"{platform.system()} has no cachestat")
    with (folder / "probe").open("wb", buffering=0) as file:
        file.write(b"x" * _PAGE)
        before = _unwritten(file.fileno(), pages=1)
        os.fdatasync(file.fileno())
        if not before or _unwritten(file.fileno(), pages=1):
            raise OSError(f"{folder}: its file system does not tell what is on the disk")


def _unwritten(file: int, *, pages: int) -> int:
    asked, counts = _Range(0, pages * _PAGE), _Counts()
    if _CALL(_CACHESTAT, file, ctypes.byref(asked), ctypes.byref(counts), 0):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(counts.dirty + counts.in_writeback)
