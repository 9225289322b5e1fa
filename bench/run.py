"""Measure parts one after the other, and keep what comes out."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench import machine
from bench.part import Bench, Measured, Part
from bench.results import Result, save

_COLUMNS = (TextColumn("[bold]{task.fields[part]}[/]"), BarColumn(), TextColumn("{task.description}"))


def run(parts: Sequence[Part], *, quick: bool, folder: Path, console: Console) -> list[Result]:
    """Measure each part and save it; show its tables as soon as it is done."""
    results, on = [], machine.told()
    for number, part in enumerate(parts, start=1):
        console.rule(f"{number}/{len(parts)} {part.title}", align="left")
        result = _measure(part, quick=quick, on=on, console=console)
        save(result, part, folder=folder)
        console.print(Markdown(part.tell(result.figures)))
        console.print(f"[dim]{part.name}: {result.seconds:.0f} s[/]")
        results.append(result)
    return results


def _measure(part: Part, *, quick: bool, on: dict[str, str], console: Console) -> Result:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, _shown(part, console) as progress:
        bench = Bench(quick=quick, scratch=Path(scratch), progress=progress)
        measured: Measured = part.measure(bench)
    return Result(part=part.name, quick=quick, on=on, seconds=round(time.monotonic() - begun, 1), measured=measured)


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
