"""What a command shows: tables for people, JSON for machines, never both."""

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from dueline.cli.faults import DONE, Fault
from dueline.model.text import printable

# Where nobody looks, nothing is wrapped.
_WIDE = 1000
_PROGRESS_AFTER_SECONDS = 2.0
# Times up to so many seconds away are told in units of so many.
_UNITS = ((90, 1, "s"), (90 * 60, 60, "min"), (36 * 3600, 3600, "h"), (float("inf"), 86_400, "days"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """Shows things on stdout, as JSON or as text, and faults on stderr."""

    as_json: bool
    now: datetime

    def json(self, value: object, *, is_fault: bool = False) -> None:
        """Write one line of JSON, to stderr if it is a fault."""
        typer.echo(json.dumps(value), err=is_fault)

    def line(self, text: str) -> None:
        """Write one line for people."""
        typer.echo(printable(text))

    def note(self, text: str) -> None:
        """Write one line for people about what went wrong, to stderr."""
        typer.echo(f"dueline: {printable(text)}", err=True)

    def record(self, named: Mapping[str, object]) -> None:
        """Show one thing, a field a line; what is None is left out."""
        texts = {name: self._text(value) for name, value in named.items() if value is not None}
        width = max(map(len, texts))
        for name, text in texts.items():
            self.line(f"{name:{width}}  {text}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Show a table."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*map(self._text, row))
        width = None if sys.stdout.isatty() else _WIDE
        Console(width=width, markup=False, emoji=False, highlight=False).print(table)

    def fault(self, error: BaseException, **about: Any) -> int:
        """Report what went wrong on stderr; return its exit code."""
        fault = Fault.of(error, **about)
        fault.report(as_json=self.as_json)
        return fault.exit_code

    def _text(self, value: object) -> str:
        if isinstance(value, datetime):
            return local(value, now=self.now)
        return "" if value is None else printable(str(value))


class Bar:
    """A progress bar on stderr, shown to people only, and once something takes longer than two seconds."""

    def __init__(self, what: str, *, shown: bool) -> None:
        self._what = what
        self._shown = shown and sys.stderr.isatty()
        self._begun = time.monotonic()
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        if self._progress:
            self._progress.stop()

    def __call__(self, done: int, of: int) -> None:
        """Show that so many are done."""
        if self._progress is None and self._shown and time.monotonic() - self._begun > _PROGRESS_AFTER_SECONDS:
            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._progress.add_task(self._what, total=of)
            self._progress.start()
        if self._progress:
            self._progress.update(self._progress.task_ids[0], completed=done, total=max(done, of))


def end_with(codes: Iterable[int]) -> None:
    """End a command with the highest of these exit codes."""
    if code := max(codes, default=DONE):
        raise typer.Exit(code)


def relative(away: timedelta) -> str:
    """Return how far a time is away.

    >>> [relative(timedelta(seconds=s)) for s in (0.4, 45, 3 * 3600, -86_400 * 3)]
    ['now', 'in 45 s', 'in 3 h', '3 days ago']
    """
    seconds = abs(away.total_seconds())
    if seconds < 1:
        return "now"
    unit, name = next((unit, name) for most, unit, name in _UNITS if seconds < most)
    far = f"{seconds / unit:.0f} {name}"
    return f"in {far}" if away > timedelta(0) else f"{far} ago"


def local(at: datetime, *, now: datetime) -> str:
    """Return a time in this machine's zone, and how far away it is."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %Z} ({relative(at - now)})"
