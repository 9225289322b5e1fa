"""The engine: dynalite over a store on disk, which a million rows do not slow down, and an SQS that takes all.

A process of its own, on loopback. MiniStack reads a whole table for a Query, and moto would answer in this process.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Any

from boto3.dynamodb.types import TypeSerializer

from bench.jobs_table import SCHEMA
from dueline.model import instant
from dueline.model.rows import Row

HERE = Path(__file__).parent
DYNALITE = HERE.parents[1] / "tests" / "contract" / "node_modules" / "dynalite"


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """Where the two services are reached."""

    dynamodb: str
    sqs: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Jobs that wait in a table: so many, like `row`, due from `first` on, one every `step`."""

    table: str
    count: int
    row: Row
    first: datetime
    step: timedelta

    def plan(self) -> str:
        """Return what load.js is to write."""
        serialize = TypeSerializer().serialize
        plan: dict[str, Any] = {
            "table": {"TableName": self.table, **SCHEMA},
            "rows": self.count,
            "item": {name: serialize(value) for name, value in self.row.items()},
            "first_ms": instant.epoch_ms(self.first),
            "step_ms": self.step // timedelta(milliseconds=1),
        }
        return json.dumps(plan)


@contextmanager
def running(folder: Path, waiting: Rows) -> Iterator[Engine]:
    """Yield a new engine whose table is not made yet, but holds those rows once it is.

    It ends with the context, and with this process whatever ends that.
    """
    node = shutil.which("node")
    if node is None or not DYNALITE.is_dir():
        raise RuntimeError("dynalite is not installed: `make check` does it, and needs Node 20 or later")
    run([node, HERE / "load.js", folder, waiting.plan()], check=True)
    serve: list[str | Path] = [node, HERE / "engine.js", folder]
    # A session of its own: Ctrl-C reaches the bench alone, which closes its standard input as it ends.
    with Popen(serve, stdin=PIPE, stdout=PIPE, text=True, start_new_session=True) as process:
        told = process.stdout.readline() if process.stdout else ""
        if not told:
            raise RuntimeError("the engine ended as it started: what it says is above")
        yield Engine(**{service: f"http://127.0.0.1:{port}" for service, port in json.loads(told).items()})
