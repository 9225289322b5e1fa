"""What is shown of the checks while they run."""

import sys
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from dueline.cli.connect import Run
from dueline.model.text import printable
from dueline.verify.check import Check, Result, Verdict
from dueline.verify.report import document_of


class Shown:
    """What is being done, on stderr where somebody looks; and a line of each result."""

    def __init__(self, run: Run) -> None:
        self._run = run
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        console = Console(stderr=True, markup=False, emoji=False)
        is_seen = sys.stderr.isatty() and not run.screen.as_json
        self._progress = Progress(*columns, console=console, transient=True, disable=not is_seen)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, check: Check) -> None:
        self._tasks[check.name] = self._progress.add_task(check.name, total=None)

    def tell(self, check: Check, what: str, done: int, of: int) -> None:
        description = printable(f"{check.name}: {what} ({done:,} of {of:,})")
        self._progress.update(self._tasks[check.name], description=description, completed=done, total=of)

    def end(self, check: Check, result: Result) -> None:
        self._progress.remove_task(self._tasks.pop(check.name))
        if self._run.screen.as_json:
            return self._run.screen.json(document_of(result))
        told = [result.why, *(result.notes if result.verdict is Verdict.FAILED else ())]
        why = "".join(f"{':;'[number > 0]} {each}" for number, each in enumerate(filter(None, told)))
        return self._run.screen.line(f"{result.check}: {result.verdict}{why} ({result.seconds:.0f} s)")
