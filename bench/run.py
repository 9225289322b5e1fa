"""Measure parts one after the other, and keep what comes out."""

import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench import cold, cost, cpu, growth, lateness, overload, producers, redis, scale, schedules
from bench.part import Bench, Measured, Part
from bench.results import Result, save
from local.template import ROOT

# All parts, in the order in which they are measured.
PARTS: tuple[Part, ...] = (
    *(cost.PART, lateness.PART, redis.PART, cpu.PART, growth.PART),
    *(scale.PART, overload.PART, producers.PART, schedules.PART, cold.PART),
)
_SHOWN = ("boto3", "aws_lambda_powertools", "ministack")
_COLUMNS = (TextColumn("[bold]{task.fields[part]}[/]"), BarColumn(), TextColumn("{task.description}"))


def run(parts: Sequence[Part], *, quick: bool, folder: Path, console: Console) -> list[Result]:
    """Measure each part and save it; show its tables as soon as it is done."""
    results, on = [], machine()
    for number, part in enumerate(parts, start=1):
        console.rule(f"{number}/{len(parts)} {part.title}", align="left")
        result = _measure(part, quick=quick, on=on, console=console)
        save(result, part, folder=folder)
        console.print(Markdown(part.markdown(result.figures)))
        console.print(f"[dim]{part.name}: {result.seconds:.0f} s[/]")
        results.append(result)
    return results


def _measure(part: Part, *, quick: bool, on: dict[str, str], console: Console) -> Result:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, _shown(part, console) as progress:
        bench = Bench(quick=quick, scratch=Path(scratch), progress=progress)
        measured: Measured = part.measure(bench)
    seconds = round(time.monotonic() - begun, 1)
    return Result(part=part.name, quick=quick, on=on, seconds=seconds, measured=measured, format=part.format)


@contextmanager
def _shown(part: Part, console: Console) -> Iterator["_Bar"]:
    with Progress(*_COLUMNS, TimeElapsedColumn(), console=console, transient=True) as progress:
        yield _Bar(progress, part.name)


class _Bar:
    """Shows a part's progress."""

    def __init__(self, progress: Progress, part: str) -> None:
        self._progress = progress
        self._task = progress.add_task("begins", part=part, total=None)

    def __call__(self, what: str, done: int, of: int) -> None:
        self._progress.update(self._task, description=what, completed=done, total=of)


def machine() -> dict[str, str]:
    """Return what to know of this machine, of the versions, and of the moment."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        **{name: version(name) for name in _SHOWN},
        "commit": _commit(),
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
    }


def _processor() -> str:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return models[0].partition(":")[2].strip() if models else platform.machine()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
