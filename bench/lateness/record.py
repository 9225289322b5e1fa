"""What landed, written down by whoever received it: a line a job, whole or not at all."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PLACE = "LATENESS_RECORD"


@dataclass(frozen=True, kw_only=True, slots=True)
class Landed:
    """A job that was received, and when, in seconds since 1970."""

    number: int
    at: float


def write(landed: Sequence[tuple[int, float]]) -> None:
    """Add jobs to the record that the environment names."""
    lines = "".join(f"{number} {at:.6f}\n" for number, at in landed)
    record = os.open(os.environ[PLACE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(record, lines.encode())
    finally:
        os.close(record)


def land(number: int) -> None:
    """Add a job that is received now."""
    write([(number, time.time())])


def read(path: Path) -> Iterator[Landed]:
    """Yield what landed so far."""
    for line in path.read_text().splitlines() if path.exists() else ():
        number, at = line.split()
        yield Landed(number=int(number), at=float(at))
