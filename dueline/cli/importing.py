"""Schedule one job per line: show progress, report the results, and keep the lines that were not scheduled."""

import shlex
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import compress, tee
from typing import Any

import typer

from dueline.cli import connect, options
from dueline.cli.connect import Run
from dueline.cli.faults import DONE, exit_code_of
from dueline.cli.import_ids import ImportIds
from dueline.cli.line_names import ByIds, ByKeys, LineNames
from dueline.cli.lines import Left, Lines
from dueline.cli.output import json_of
from dueline.cli.screen import Bar, end_with
from dueline.cli.signals import sigterm_as_ctrl_c, undisturbed
from dueline.client.answers import Job
from dueline.client.asked_terms import id_terms
from dueline.client.new_job import NewJob
from dueline.errors import DuelineError
from dueline.model.job import queue_name
from dueline.retry.patience import Patience

# An import tries as often as it takes, and gives up after so long without any progress.
PATIENCE = Patience(attempts=1000, seconds=180)
_EXAMPLES = 3


@dataclass(kw_only=True, slots=True)
class Kind:
    """Errors of one kind: how many there were, and the first few of them with their lines."""

    count: int = 0
    examples: list[tuple[int, DuelineError]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is asked of each line's job: when it is due, by what it is one job, and the `rest`.

    That is a `key` of the caller's or a `run`, an earlier one that goes on and says when its jobs are due, or neither.
    """

    at: datetime | None = None
    delay: timedelta | None = None
    key: str | None = None
    run: ImportIds | None = None
    rest: Mapping[str, Any]


class Import:
    """One run over lines: each is a job under a name of its own, so that lines that failed can be given back.

    That is an id, or a key where the caller gave one, and where the deployment does not tell what ids need. `source` is
    how the lines were given, and `left` where those go that were not scheduled. It finds the deployment, so that no
    lines are read from stdin in vain. Raises what `connect.client` raises, QueueNotFound, and InvalidJob for what no
    job can be asked with.
    """

    def __init__(self, run: Run, queue: str, source: str, *, asked: Asked, left: Left):
        self._run, self._screen = run, run.screen
        self._queue, self._source, self._asked, self._left = queue, source, asked, left
        queue_name(queue)
        self._client = connect.client(run.target, patience=PATIENCE)
        self._names = self._first_names()
        NewJob(payload=None, at=asked.at, delay=asked.delay, key=asked.key, **asked.rest).checked(now=None)
        self._kinds: dict[str, Kind] = {}
        self._is_left = bytearray()
        self._code = DONE

    def carry_out(self, lines: Lines) -> None:
        """Schedule these lines and report the results, even of an interrupted run. Exits with the highest code.

        Raises InvalidJob, before any is sent, when the key is too long for the last of them.
        """
        NewJob(payload=None, **self._names.of(lines.last)).checked(now=None)
        # Each line is left until its job is known: whatever ends the run, and wherever, none is lost.
        self._is_left = bytearray(b"\1") * lines.count
        with sigterm_as_ctrl_c():
            try:
                self._names = self._names_to_send(lines)
                self._send(lines)
            finally:
                self._keep(lines)
                self._report(lines.count)
        end_with([self._code])

    def _first_names(self) -> LineNames:
        if self._asked.run is not None:
            return ByIds(queue=self._queue, ids=self._asked.run)
        key = str(uuid.uuid4()) if self._asked.key is None else self._asked.key
        return ByKeys(key=key, at=self._asked.at, delay=self._asked.delay)

    def _names_to_send(self, lines: Lines) -> LineNames:
        """Return ids in place of keys where those are nobody's, if what ids need is told.

        Not before the lines are read, which may take long: a delay begins now.
        """
        asked = self._asked
        is_named = asked.run is not None or asked.key is not None
        terms = None if is_named or not lines.count else id_terms(self._client, self._queue)
        if terms is None:
            return self._names
        ids = ImportIds.begun(uuid.uuid4(), terms, at=asked.at, delay=asked.delay)
        return ByIds(queue=self._queue, ids=ids)

    def _send(self, lines: Lines) -> None:
        to_send, to_tell = tee(lines)
        results = self._client.schedule_each(self._queue, self._new_jobs(to_send))
        with closing(results), Bar("scheduling", shown=not self._screen.as_json) as bar:
            for place, (result, (number, _)) in enumerate(zip(results, to_tell, strict=True)):
                self._note(result, number)
                self._is_left[place] = isinstance(result, DuelineError)
                bar(place + 1, len(self._is_left))

    def _new_jobs(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[NewJob]:
        for number, line in lines:
            yield NewJob(payload=_payload_of(line, number), **self._names.of(number), **self._asked.rest)

    def _note(self, result: Job | DuelineError, number: int) -> None:
        if isinstance(result, DuelineError):
            self._note_error(result, number)
        elif self._screen.as_json:
            self._screen.json({"line": number, **json_of(result)})

    def _note_error(self, error: DuelineError, number: int) -> None:
        self._code = max(self._code, exit_code_of(error))
        if self._screen.as_json:
            self._screen.fault(error, line=number)
        kind = self._kinds.setdefault(error.code, Kind())
        kind.count += 1
        if len(kind.examples) < _EXAMPLES:
            kind.examples.append((number, error))

    def _keep(self, lines: Lines) -> None:
        """Keep the lines that failed, and those whose results nobody waits for any more."""
        with undisturbed():
            self._left.keep(compress(lines, self._is_left), count=sum(self._is_left))

    def _report(self, count: int) -> None:
        if not self._screen.as_json:
            for code, kind in self._kinds.items():
                self._screen.note(f"{_lines(kind.count)} failed: {code}, such as")
                for number, error in kind.examples:
                    self._screen.note(f"  line {number}: {error}")
            self._screen.line(f"scheduled {count - self._left.count} of {count}")
        if self._left.count:
            self._report_left()

    def _report_left(self) -> None:
        left = self._left
        if self._screen.as_json:
            fields = {"lines": left.count, "file": None if left.fault else str(left.path), **self._names.told}
            return self._screen.json({"left": fields}, is_fault=True)
        if left.fault:
            self._screen.note(f"{_lines(left.count)} left, which {left.path} could not take: {left.fault.strerror}")
        else:
            self._screen.note(f"{_lines(left.count)} left, in {left.path}, each under its old number")
        self._screen.note(f"{self._names.again}: {self._command()}")
        return None

    def _command(self) -> str:
        rest = self._asked.rest
        options = {
            **self._names.options,
            "--tenant": rest["tenant"],
            "--priority": None if rest["priority"] == 1 else str(rest["priority"]),
        }
        source = self._source if self._left.fault else f"@{self._left.path}"
        target = self._run.target.options
        return shlex.join(["dueline", *_typed(target), "schedule", self._queue, source, "--lines", *_typed(options)])


def _typed(options: Mapping[str, str | None]) -> list[str]:
    return [each for name, value in options.items() if value is not None for each in (name, value)]


def _payload_of(line: bytes, number: int) -> object:
    """Return the JSON value of a line; for one that cannot be read any more, what the client refuses as none."""
    try:
        return options.line(line, number)
    except typer.BadParameter as error:
        return error


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
