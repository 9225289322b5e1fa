"""What had its effect, written down by whoever had it: one line each, whole or not at all."""

import json
import os
import time
from pathlib import Path
from typing import Any

PLACE = "SHIFT_BOOK"


def write(queue: str, id: str, **told: Any) -> None:
    """Add a line. Whatever kills this process, the line is there or not."""
    line = json.dumps({"queue": queue, "id": id, "at": time.time(), "pid": os.getpid(), **told}) + "\n"
    book = os.open(os.environ[PLACE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(book, line.encode())
    finally:
        os.close(book)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines that are there; one that is being written may be read in part, and is left out."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]
