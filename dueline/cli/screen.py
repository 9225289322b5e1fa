"""What a command shows: text for people, JSON for machines, never both; errors as one line and an exit code."""

import dataclasses
import json
import logging
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from itertools import compress
from typing import Any, TextIO

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress

from dueline.config import ConfigurationError
from dueline.core import instant, job, queue_settings
from dueline.core.text import printable, shown
from dueline.errors import RETRYABLE, DuelineError

Rows = Iterable[Sequence[object]]
# Those of errors are in errors.ERRORS.
DONE, AGAIN, WRONG, TOO_LATE, INTERRUPTED = 0, 1, 2, 4, 130
EXIT_CODES = (
    "Exit codes: 0 done; 1 AWS or the network failed, try again; 2 wrong usage, or what can never be scheduled;"
    " 3 no such job, schedule, queue or deployment; 4 too late; 5 AWS credentials are missing or do not allow it;"
    " 130 interrupted. Of several jobs, the highest. doctor and preflight have exit codes of their own."
)
# typer's own click, or in its older versions click itself: what is wrong with the command's arguments.
_Misuse: Any = typer.BadParameter.__mro__[2]
# Spans of up to so many seconds are shown in units of so many.
_UNITS = ((90, 1, "s"), (90 * 60, 60, "min"), (36 * 3600, 3600, "h"), (float("inf"), 86_400, "days"))


def report_error(error: BaseException, *, as_json: bool, **about: Any) -> int:
    """Write an error to stderr; return its exit code. `about` names what it concerns.

    It is one line, for people one more for each wrong setting of a file.
    """
    if isinstance(error, DuelineError):
        code, message, exit_code = error.code, _message_of(error), error.exit_code
        names = {"id": error.job_id, "key": error.key, "idempotency_key": error.idempotency_key}
        about |= {name: value for name, value in names.items() if value is not None}
    elif isinstance(error, _Misuse):
        code, message, exit_code = "usage", error.format_message().removeprefix("Invalid value: "), WRONG
        # What pydantic checked for typer, but for a choice, is said without the value.
        wrong = (each for each in getattr(error.__cause__, "errors", list)() if each["type"] != "value_error")
        message += "".join(f", and it is {shown(each['input'])}" for each in wrong)
    elif isinstance(error, ConfigurationError):
        code, message, exit_code = "usage", str(error), WRONG
    elif isinstance(error, KeyboardInterrupt | typer.Abort):
        code, message, exit_code = "interrupted", "interrupted", INTERRUPTED
    else:
        code, message, exit_code = "error", f"{type(error).__name__}: {error}", AGAIN
    line = " ".join(message.split())
    document = json.dumps({"error": {"code": code, "message": line, **about}})
    lines = message.splitlines() if isinstance(error, ConfigurationError) else [line]
    text = "\n".join(map(printable, lines))
    typer.echo(document if as_json else f"dueline: {text}", file=sys.stderr)
    return exit_code


def _message_of(error: DuelineError) -> str:
    parts = [str(error)]
    if isinstance(error, RETRYABLE) and error.job_id:
        parts.append(f"job {error.job_id} may be scheduled all the same")
    if isinstance(error, RETRYABLE) and error.idempotency_key:
        parts.append(f"repeating the command with --idempotency-key {error.idempotency_key} schedules it once")
    return "; ".join([*parts, *getattr(error, "__notes__", ())])


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """Shows results on stdout: `json` to machines, `ids` alone if it is `quiet`, all else to people.

    Errors and notes go to stderr.
    """

    as_json: bool
    now: datetime
    quiet: bool = False

    @property
    def shows_text(self) -> bool:
        """Whether people are to read what it shows."""
        return not (self.as_json or self.quiet)

    def json(self, *values: object, to_stderr: bool = False) -> None:
        """Write values as JSON, one a line."""
        for value in values if self.as_json else ():
            typer.echo(json.dumps(value), err=to_stderr)

    def ids(self, *ids: str | None) -> None:
        """Write ids alone, one a line, if nothing else is wanted."""
        for id in filter(None, ids) if self.quiet else ():
            typer.echo(printable(id))

    def line(self, text: str) -> None:
        if self.shows_text:
            typer.echo(printable(text))

    def note(self, text: str) -> None:
        """Write one line to stderr."""
        if not self.as_json:
            typer.echo(f"dueline: {printable(text)}", err=True)

    def record(self, fields: Mapping[str, object]) -> None:
        """Show one thing, a field a line; None is left out."""
        texts = {name: self._text(value) for name, value in fields.items() if value is not None}
        width = max(map(len, texts))
        for name, text in texts.items():
            self.line(f"{name:{width}}  {text}")

    def table(self, columns: Sequence[str], rows: Rows, *, optional: Container[str] = (), empty: str = "") -> None:
        """Show a table, with columns of numbers to the right; without any rows `empty`, if it is given.

        Columns that are `optional` are left out where no row has a value. A row is one line: what a terminal wraps can
        be copied whole, an id that is cut cannot.
        """
        cells = [*rows] if self.shows_text else []
        if not self.shows_text or (empty and not cells):
            return self.line(empty)
        kept = [name not in optional or any(row[at] for row in cells) for at, name in enumerate(columns)]
        columns, cells = [*compress(columns, kept)], [[*compress(row, kept)] for row in cells]
        of_numbers = [bool(cells) and all(type(row[each]) is int for row in cells) for each in range(len(columns))]
        lines = [[*columns], *([self._cell(value) for value in row] for row in cells)]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            spaces = [" " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True)]
            each_cell = zip(line, spaces, of_numbers, strict=True)
            padded = (space + text if is_number else text + space for text, space, is_number in each_cell)
            typer.secho("  ".join(padded).rstrip(), bold=line is lines[0])
        return None

    def error(self, error: BaseException, **about: Any) -> int:
        """Report an error on stderr; return its exit code."""
        return report_error(error, as_json=self.as_json, **about)

    @contextmanager
    def progress(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """Show a progress bar on a terminal's stderr; yield what shows how many are done of how many."""
        is_shown = _is_terminal(sys.stderr) and not self.as_json
        with Progress(console=Console(stderr=True), transient=True, redirect_stdout=False, disable=not is_shown) as bar:
            task = bar.add_task(label, total=None)
            yield lambda done, of: bar.update(task, completed=done, total=max(done, of))

    def check_can_confirm(self, option: str) -> None:
        """Raise typer.BadParameter where nobody can confirm what an option does."""
        if not (self.shows_text and can_confirm()):
            raise typer.BadParameter(
                f"{option} needs a confirmation, which only a person at a terminal can give: add --yes"
            )

    def _cell(self, value: object) -> str:
        """Return a value as it is in a table: of a time of today, the time alone."""
        if not isinstance(value, datetime):
            return self._text(value)
        at, today = value.astimezone(), self.now.astimezone().date()
        return f"{at:%H:%M:%S %Z}" if at.date() == today else f"{at:%Y-%m-%d %H:%M:%S %Z}"

    def _text(self, value: object) -> str:
        if isinstance(value, datetime):
            return f"{value.astimezone():%Y-%m-%d %H:%M:%S %Z} ({relative(value - self.now)})"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return f"{value:,}"
        return "" if value is None else printable(str(value))


def can_confirm() -> bool:
    """Return whether a person is there to answer a question."""
    return _is_terminal(sys.stdin)


class ScreenLog(logging.Handler):
    """Shows the library's warnings on stderr, and nowhere else."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(level=logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.json({"warning": record.getMessage()}, to_stderr=True)
        self._screen.note(record.getMessage())


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
    far = f"{seconds / unit:,.0f} {name}"
    return f"in {far}" if away > timedelta(0) else f"{far} ago"


def json_of(value: object) -> Any:
    """Return a value as the HTTP API has it in JSON: a dataclass as its fields, without those that are None."""
    match value:
        case queue_settings.Rate():
            return str(value)
        case job.Route():
            return value.name.lower()
        case Enum():
            return value.value
        case datetime():
            return instant.text(value)
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(name): json_of(each) for name, each in value.items()}
        case list() | tuple() | frozenset() | set():
            return [json_of(each) for each in value]
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: json_of(each) for name, each in fields.items() if each is not None}
    return value


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether a person is at a stream, which is None where the process was started with it closed."""
    return stream is not None and stream.isatty()
