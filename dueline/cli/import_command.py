"""Schedule payloads from a file, one a line: all are checked before any is sent, and those that failed are kept."""

import errno
import os
import re
import shlex
import signal
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import compress, tee
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import typer

from dueline.cli import connect, options
from dueline.cli.connect import CommandRun
from dueline.cli.screen import DONE, end_with, json_of
from dueline.client.client import Client
from dueline.client.job_ids import IdParameters
from dueline.client.models import Job, NewJob
from dueline.core import instant
from dueline.core.job import JobId, Partition, Route, queue_name
from dueline.core.request import JOBS_TO_A_PARTITION, partition_of
from dueline.core.retry import Patience
from dueline.core.text import shown
from dueline.errors import DuelineError

_HELD_BYTES = 8_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """The lines that have a payload, with their numbers, read from a temporary file: `count` of them, up to `last`."""

    kept: IO[bytes]
    count: int
    last: int

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line; one iteration ends the one before."""
        self.kept.seek(0)
        return ((number, line) for number, line in enumerate(self.kept, start=1) if not options.is_blank(line))


@contextmanager
def lines_of(text: str) -> Iterator[Lines]:
    """Read the lines on stdin or in a file. Raises typer.BadParameter for one that is no JSON, before any is used."""
    with SpooledTemporaryFile(_HELD_BYTES) as kept:
        count = last = 0
        with options.source(text) as source:
            for number, line in enumerate(source, start=1):
                kept.write(line)
                if not options.is_blank(line):
                    options.line(line, number)
                    count, last = count + 1, number
        yield Lines(kept=kept, count=count, last=last)


class ImportRest:
    """The lines that were not scheduled, in a new file that only its owner can read, written completely or not at all.

    Each keeps its number, which makes its key: lines in between are blank. `fault` is why the file was not written.
    """

    def __init__(self, path: Path | None, *, now: datetime) -> None:
        self.path = path or Path(f"dueline-left-{now.astimezone(UTC):%Y%m%dT%H%M%S-%f}.jsonl")
        self.count = 0
        self.fault: OSError | None = None

    def keep(self, lines: Iterable[tuple[int, bytes]], *, count: int) -> None:
        """Write so many lines, whose numbers rise. Without any there is no file."""
        self.count = count
        if not count:
            return
        unfinished = self.path.with_name(f"{self.path.name}.{uuid.uuid4().hex}")
        try:
            _write(unfinished, lines)
            if self.path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            unfinished.rename(self.path)
        except OSError as fault:
            self.fault = fault
            with suppress(OSError):
                unfinished.unlink()


def _write(path: Path, lines: Iterable[tuple[int, bytes]]) -> None:
    with open(path, "xb", opener=partial(os.open, mode=0o600)) as file:
        last = 0
        for number, line in lines:
            file.write(b"\n" * (number - last - 1) + line.rstrip(b"\r\n") + b"\n")
            last = number


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let neither SIGTERM nor Ctrl-C cut off what is done in here, which takes no longer than writing to a disk."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def id_terms(client: Client, queue: str) -> IdParameters | None:
    """Return what ids of a queue's jobs are made with, retrying as often as the client does.

    Returns None from an older deployment, for a queue that takes no jobs yet, or without the right to list queues.
    Raises QueueNotFound, Throttled or Unavailable.
    """
    name = queue_name(queue)
    return client._calls.run(lambda: client._api.id_parameters(name))


# An import tries as often as it takes, and gives up after so long without any progress.
PATIENCE = Patience(attempts=1000, seconds=180)
_EXAMPLES = 3
_TOKEN = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([1-9][0-9]{0,2})\.([dt])\.(0|[1-9][0-9]{0,12})", re.ASCII
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportIds:
    """The ids of one run's lines: UUIDs of version 5 of the run's `number` and the line's.

    All are due at once, by one route. Up to 100 neighbours share one of `partitions`, as the jobs of one call do. Ids
    cost nothing, and the table has them until the job is due; in SQS, a repeat is another message.
    """

    number: uuid.UUID
    partitions: int
    route: Route
    due: datetime

    @classmethod
    def create(
        cls, number: uuid.UUID, terms: IdParameters, *, at: datetime | None, delay: timedelta | None
    ) -> "ImportIds":
        """Return the ids of a run that starts now. Raises InvalidJob for a time that no job can be due at."""
        # By AWS's clock.
        request = NewJob(payload=None, at=at, delay=delay).checked(now=terms.moment.latest)
        due = terms.due(at=request.at, delay=request.delay)
        return cls(number=number, partitions=terms.partitions, route=terms.route(due), due=due)

    @classmethod
    def parse(cls, token: str) -> "ImportIds":
        """Return the ids that a token names. Raises typer.BadParameter."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            form = "{UUID}.{partitions}.{d or t}.{due in ms}, as an earlier run printed it"
            raise typer.BadParameter(f"{shown(token, most=200)} is no run: it must be of the form {form}")
        number, partitions, route, due_ms = match.groups()
        due = instant.from_epoch_ms(int(due_ms))
        return cls(number=uuid.UUID(number), partitions=int(partitions), route=Route(route), due=due)

    def __str__(self) -> str:
        return f"{self.number}.{self.partitions}.{self.route}.{instant.epoch_ms(self.due)}"

    def id(self, queue: str, line: int) -> JobId:
        """Return the id of a line's job."""
        first = self._uid(line - line % JOBS_TO_A_PARTITION)
        partition = Partition(queue=queue, number=partition_of(first, self.partitions))
        return JobId(partition=partition, route=self.route, due=self.due, uid=self._uid(line))

    def _uid(self, line: int) -> str:
        return str(uuid.uuid5(self.number, str(line)))

    def request(self, queue: str, line: int) -> Mapping[str, Any]:
        """Return the parameters that identify a line's job, and say when it is due."""
        return {"id": str(self.id(queue, line))}

    @property
    def as_json(self) -> Mapping[str, str]:
        """What identifies the run's jobs, for machines."""
        return {"run": str(self)}

    @property
    def options(self) -> Mapping[str, str | None]:
        """The options of a command that continues with the same jobs."""
        return {"--run": str(self)}

    @property
    def hint(self) -> str:
        """What that command does."""
        if self.route is Route.DIRECT:
            return "to continue, though a line that was scheduled all the same comes twice"
        # A tick sends a job to SQS up to its lookahead before it is due.
        return f"to continue, with none scheduled twice until some minutes before {instant.text(self.due)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LineKeys:
    """The idempotency keys of a run's lines, such as `{key}-7`: two writes more a job, remembered for the retention.

    Its methods are those of ImportIds.
    """

    key: str
    at: datetime | None = None
    delay: timedelta | None = None

    def request(self, _: str, line: int) -> Mapping[str, Any]:
        return {"key": f"{self.key}-{line}", "at": self.at, "delay": self.delay}

    @property
    def as_json(self) -> Mapping[str, str]:
        return {"key": self.key}

    @property
    def options(self) -> Mapping[str, str | None]:
        return {
            "--key": self.key,
            "--at": None if self.at is None else instant.text(instant.round_up(self.at)),
            "--delay": None if self.delay is None else f"{self.delay.total_seconds():.3f}".rstrip("0").rstrip("."),
        }

    @property
    def hint(self) -> str:
        return "to continue, with none scheduled twice"


@dataclass(frozen=True, kw_only=True, slots=True)
class LineOptions:
    """The options of all lines' jobs: when they are due, what identifies them, and the `rest`.

    They have a `key` of the caller's, or continue a `run`, which says when its jobs are due, or neither.
    """

    at: datetime | None = None
    delay: timedelta | None = None
    key: str | None = None
    run: ImportIds | None = None
    rest: Mapping[str, Any]


class Import:
    """One run over lines, each a job with an id or key of its own, so that lines that failed can be sent again.

    Ids are used unless the caller gave a key, or the deployment does not say what ids are made with. `source` is the
    PAYLOAD argument, and `left` the file for lines that were not scheduled. The deployment is found before any line is
    read. Raises what `connect.client` raises, QueueNotFound, and InvalidJob for options that no job can have.
    """

    def __init__(self, run: CommandRun, queue: str, source: str, *, chosen: LineOptions, left: ImportRest):
        self._run, self._screen = run, run.screen
        self._queue, self._source, self._options, self._left = queue, source, chosen, left
        queue_name(queue)
        self._client = connect.client(run.target, patience=PATIENCE)
        key = str(uuid.uuid4()) if chosen.key is None else chosen.key
        self._ids: ImportIds | LineKeys = chosen.run or LineKeys(key=key, at=chosen.at, delay=chosen.delay)
        NewJob(payload=None, at=chosen.at, delay=chosen.delay, key=chosen.key, **chosen.rest).checked(now=None)
        # By their code: how many errors there were, and the first few of them with their lines.
        self._errors: Counter[str] = Counter()
        self._examples: dict[str, list[tuple[int, DuelineError]]] = {}
        self._is_left = bytearray()
        self._code = DONE

    def carry_out(self, lines: Lines) -> None:
        """Schedule these lines and report the results, even of an interrupted run. Exits with the highest code.

        Raises InvalidJob, before any is sent, when the key is too long for the last of them.
        """
        NewJob(payload=None, **self._ids.request(self._queue, lines.last)).checked(now=None)
        # Each line is left until its job's result is there: however and wherever the run ends, no line is lost.
        self._is_left = bytearray(b"\1") * lines.count
        try:
            self._use_ids(lines)
            self._send(lines)
        finally:
            # The lines that failed, and those without a result.
            with undisturbed():
                self._left.keep(compress(lines, self._is_left), count=sum(self._is_left))
            self._report(lines.count)
        end_with([self._code])

    def _use_ids(self, lines: Lines) -> None:
        """Use ids in place of random keys, if the deployment says what they are made with.

        Not before the lines are read, which may take long: a delay counts from now.
        """
        chosen = self._options
        if chosen.run is None and chosen.key is None and lines.count:
            terms = id_terms(self._client, self._queue)
            if terms is not None:
                self._ids = ImportIds.create(uuid.uuid4(), terms, at=chosen.at, delay=chosen.delay)

    def _send(self, lines: Lines) -> None:
        to_send, to_report = tee(lines)
        results = self._client.schedule_each(self._queue, self._new_jobs(to_send))
        with closing(results), self._screen.progress("scheduling") as bar:
            for place, (result, (number, _)) in enumerate(zip(results, to_report, strict=True)):
                self._note(result, number)
                self._is_left[place] = isinstance(result, DuelineError)
                bar(place + 1, len(self._is_left))

    def _new_jobs(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[NewJob]:
        for number, line in lines:
            request = self._ids.request(self._queue, number)
            yield NewJob(payload=_payload_of(line, number), **request, **self._options.rest)

    def _note(self, result: Job | DuelineError, number: int) -> None:
        if not isinstance(result, DuelineError):
            if self._screen.as_json:
                self._screen.json({"line": number, **json_of(result)})
            return
        self._code = max(self._code, result.exit_code)
        if self._screen.as_json:
            self._screen.error(result, line=number)
        self._errors[result.code] += 1
        if self._errors[result.code] <= _EXAMPLES:
            self._examples.setdefault(result.code, []).append((number, result))

    def _report(self, count: int) -> None:
        if not self._screen.as_json:
            for code, errors in self._errors.items():
                self._screen.note(f"{_lines(errors)} failed: {code}, such as")
                for number, error in self._examples[code]:
                    self._screen.note(f"  line {number}: {error}")
        if self._left.count:
            self._report_left()
        # Last: stdout may be closed.
        if not self._screen.as_json:
            self._screen.line(f"scheduled {count - self._left.count} of {count}")

    def _report_left(self) -> None:
        left = self._left
        if self._screen.as_json:
            fields = {"lines": left.count, "file": None if left.fault else str(left.path), **self._ids.as_json}
            return self._screen.json({"left": fields}, to_stderr=True)
        if left.fault:
            self._screen.note(f"{_lines(left.count)} left; {left.path} could not be written: {left.fault.strerror}")
        else:
            self._screen.note(f"{_lines(left.count)} left, in {left.path}, each with its old number")
        return self._screen.note(f"{self._ids.hint}: {self._command()}")

    def _command(self) -> str:
        rest = self._options.rest
        priority = None if rest["priority"] == 1 else str(rest["priority"])
        options = {**self._ids.options, "--tenant": rest["tenant"], "--priority": priority}
        source = self._source if self._left.fault else f"@{self._left.path}"
        target = self._run.target.options
        return shlex.join(["dueline", *_typed(target), "schedule", self._queue, source, "--lines", *_typed(options)])


def _typed(options: Mapping[str, str | None]) -> list[str]:
    return [each for name, value in options.items() if value is not None for each in (name, value)]


def _payload_of(line: bytes, number: int) -> object:
    """Return the JSON value of a line; for one that can no longer be read, a value that the client refuses."""
    try:
        return options.line(line, number)
    except typer.BadParameter as error:
        return error


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
