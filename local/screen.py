"""What a demonstration shows: a live table on a terminal, plain lines in a pipe."""

from datetime import UTC, datetime
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from dueline.core import instant
from local.demonstration import Demonstration, Scheduled


def screen(console: Console) -> "LiveTable | Lines":
    """Return what fits the console: a live table on a terminal, lines in a pipe."""
    return LiveTable(console) if console.is_terminal else Lines(console)


class LiveTable:
    """A table that changes as jobs land."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, demonstration: Demonstration) -> None:
        table = Table("queue", "job", "route", "due (UTC)", "state", "lateness")
        table.caption = _refused(demonstration) if demonstration.refusal else None
        for job in list(demonstration.jobs):
            table.add_row(job.queue, job.what, job.route, _clock(job), *_state(job))
        self._live.update(table)


class Lines:
    """A line for each event, once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, demonstration: Demonstration) -> None:
        for job in list(demonstration.jobs):
            self._print(f"scheduled  {job.queue:<10} {job.what:<24} {job.route:<7} due {_clock(job)}")
            if job.cancelled:
                self._print(f"cancelled  {job.queue:<10} {job.what:<24} {job.id}")
            for landed in list(job.landed):
                self._print(
                    f"landed     {job.queue:<10} {job.what:<24} {job.route:<7} {landed.lateness * 1000:+5.0f} ms"
                )
        if demonstration.refusal:
            self._print(_refused(demonstration))

    def _print(self, line: str) -> None:
        if line not in self._printed:
            self._printed.add(line)
            self._console.print(line, highlight=False, soft_wrap=True)


def _refused(demonstration: Demonstration) -> str:
    return f"a malformed request was refused with {demonstration.refusal}"


def _clock(job: Scheduled) -> str:
    return instant.text(job.due)[11:-1] if not job.cancelled else instant.text(job.due)[:10]


def _state(job: Scheduled) -> tuple[str, str]:
    if job.landed:
        return "landed", f"{job.landed[0].lateness * 1000:+.0f} ms"
    if job.cancelled:
        return "cancelled", ""
    return "scheduled", f"due in {max(0.0, (job.due - datetime.now(UTC)).total_seconds()):.0f} s"
