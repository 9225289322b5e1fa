"""Schedule payloads from a file, one a line: all are checked before any is sent, and those that failed are kept."""

import json
import re
import shlex
import signal
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import compress, tee
from pathlib import Path
from tempfile import NamedTemporaryFile, SpooledTemporaryFile
from typing import IO

import typer

from dueline.cli import connect, options, screen
from dueline.client import client, job_ids, models
from dueline.core import instant, request, retry
from dueline.core.job import JobId, Partition, Route, queue_name
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
        return ((number, line) for number, line in enumerate(self.kept, start=1) if not _is_blank(line))


@contextmanager
def lines_of(text: str) -> Iterator[Lines]:
    """Read the lines on stdin or in a file. Raises typer.BadParameter for one that is no JSON, before any is used."""
    if text != "-" and not text.startswith("@"):
        raise typer.BadParameter("--lines reads payloads from stdin or a file: PAYLOAD must be - or @file")
    with SpooledTemporaryFile(_HELD_BYTES) as kept:
        count = last = 0
        with options.source(text) as source:
            for number, line in enumerate(source, start=1):
                kept.write(line)
                if not _is_blank(line):
                    options.json_value(line, f"line {number}")
                    count, last = count + 1, number
        yield Lines(kept=kept, count=count, last=last)


def _is_blank(line: bytes) -> bool:
    """Return whether a line has only what JSON treats as space."""
    return not line.strip(b" \t\r\n")


def keep_lines(path: Path, lines: Iterable[tuple[int, bytes]]) -> OSError | None:
    """Write lines to a new file that only its owner can read, completely or not at all; return why it was not written.

    Each keeps its number, which makes its idempotency key: lines in between are blank.
    """
    try:
        # Others may not read it.
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                _write(file, lines)
                if path.exists():
                    raise FileExistsError(0, "it exists by now")
                Path(file.name).rename(path)
            except OSError:
                Path(file.name).unlink()
                raise
    except OSError as fault:
        return fault
    return None


def _write(file: IO[bytes], lines: Iterable[tuple[int, bytes]]) -> None:
    last = 0
    for number, line in lines:
        file.write(b"\n" * (number - last - 1) + line.rstrip(b"\r\n") + b"\n")
        last = number
    file.flush()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let neither SIGTERM nor Ctrl-C cut off what is done in here, which takes no longer than writing to a disk."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def id_terms(dueline_client: client.Client, queue: str) -> job_ids.IdParameters | None:
    """Return what ids of a queue's jobs are made with, retrying as often as the client does.

    Returns None for a queue that takes no jobs yet. Raises QueueNotFound, Forbidden, Throttled or Unavailable.
    """
    name = queue_name(queue)
    return dueline_client._calls.run(lambda: dueline_client._api.id_parameters(name))


# An import tries as often as it takes, and gives up after so long without any progress.
PATIENCE = retry.Patience(attempts=1000, seconds=180)
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
        cls, number: uuid.UUID, terms: job_ids.IdParameters, *, at: datetime | None, delay: float | timedelta | None
    ) -> "ImportIds":
        """Return the ids of a run that starts now. Raises InvalidJob for a time that no job can be due at."""
        # By AWS's clock.
        checked = models.NewJob(payload=None, at=at, delay=delay).checked(now=terms.moment.latest)
        due = terms.due(at=checked.at, delay=checked.delay)
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
        first = self._uid(line - line % request.JOBS_TO_A_PARTITION)
        partition = Partition(queue=queue, number=request.partition_of(first, self.partitions))
        return JobId(partition=partition, route=self.route, due=self.due, uid=self._uid(line))

    def _uid(self, line: int) -> str:
        return str(uuid.uuid5(self.number, str(line)))

    @property
    def hint(self) -> str:
        """What a command does that continues with the same ids."""
        if self.route is Route.DIRECT:
            return "to continue, though a line that was scheduled all the same comes twice"
        # A tick sends a job to SQS up to its lookahead before it is due.
        return f"to continue, with none scheduled twice until some minutes before {instant.text(self.due)}"


class Import:
    """One run over lines, each a job with an id or key of its own, so that lines that failed can be sent again.

    They are as `job` is. It has an idempotency key of the caller's, or a `token` says what their ids are, and when they
    are due; otherwise they have new ids, unless the deployment does not say what these are made with. `source` is the
    PAYLOAD argument, and `left` the file for lines that were not scheduled. The deployment is found before any line is
    read. Raises what `connect.client` raises, QueueNotFound, InvalidJob for what no job can have, and
    typer.BadParameter.
    """

    def __init__(
        self,
        run: connect.CommandRun,
        queue: str,
        source: str,
        job: models.NewJob,
        *,
        token: ImportIds | None,
        left: Path | None,
    ) -> None:
        for name in ("at", "delay", "idempotency_key"):
            if token and getattr(job, name) is not None:
                reason = "a run says which jobs its lines are, and when they are due"
                option = name.replace("_", "-")
                raise typer.BadParameter(f"--run and --{option} are both given: give one of them, {reason}")
        if left is not None and left.exists():
            raise typer.BadParameter(f"--left is {str(left)!r}, which exists: it must be a new file")
        if left is not None and not left.absolute().parent.is_dir():
            raise typer.BadParameter(f"--left is {str(left)!r}: there is no folder {str(left.parent)!r}")
        self._run, self._screen = run, run.screen
        self._queue, self._source = queue_name(queue), source
        self._client = connect.client(run.target, patience=PATIENCE)
        self._job = replace(job, delay=job.checked(now=None).delay)
        self._ids = token
        # Without ids, lines have keys such as `{key}-7`: two writes more a job, remembered for the retention.
        self._key = job.idempotency_key or str(uuid.uuid4())
        self._left = left or Path(f"dueline-left-{run.screen.now.astimezone(UTC):%Y%m%dT%H%M%S-%f}.jsonl")
        # By their code: how many errors there were, and the first few of them.
        self._errors: Counter[str] = Counter()
        self._examples: defaultdict[str, list[str]] = defaultdict(list)
        self._is_left = bytearray()
        self._code = screen.DONE

    def carry_out(self, lines: Lines) -> None:
        """Schedule these lines and report the results, even of an interrupted run. Exits with the highest code.

        Raises InvalidJob, before any is sent, when the idempotency key is too long for the last of them.
        """
        self._job_of(None, lines.last).checked(now=None)
        # Each line is left until its job's result is there: however and wherever the run ends, no line is lost.
        self._is_left = bytearray(b"\1") * lines.count
        try:
            if lines.count and self._job.idempotency_key is None and self._ids is None:
                self._use_ids()
            self._send(lines)
        finally:
            # The lines that failed, and those without a result.
            left, fault = sum(self._is_left), None
            with undisturbed():
                if left:
                    fault = keep_lines(self._left, compress(lines, self._is_left))
            self._report(lines.count, left, fault)
        screen.end_with([self._code])

    def _job_of(self, payload: object, line: int) -> models.NewJob:
        if self._ids:
            id = str(self._ids.id(self._queue, line))
            return replace(self._job, payload=payload, id=id, at=None, delay=None)
        return replace(self._job, payload=payload, idempotency_key=f"{self._key}-{line}")

    def _use_ids(self) -> None:
        """Use ids in place of random keys, if the deployment says what they are made with.

        Not before the lines are read, which may take long: a delay counts from now.
        """
        if terms := id_terms(self._client, self._queue):
            self._ids = ImportIds.create(uuid.uuid4(), terms, at=self._job.at, delay=self._job.delay)

    def _send(self, lines: Lines) -> None:
        to_send, to_report = tee(lines)
        jobs = (self._job_of(json.loads(line), number) for number, line in to_send)
        with closing(self._client.schedule_each(self._queue, jobs)) as results:
            shown = self._screen.track("scheduling", zip(results, to_report, strict=True), of=len(self._is_left))
            for place, (result, (number, _)) in enumerate(shown):
                self._note(result, number)
                self._is_left[place] = isinstance(result, DuelineError)

    def _note(self, result: models.Job | DuelineError, number: int) -> None:
        if not isinstance(result, DuelineError):
            self._screen.ids(result.id)
            if self._screen.as_json:
                self._screen.json({"line": number, **screen.json_of(result)})
            return
        self._code = max(self._code, result.exit_code)
        if self._screen.as_json:
            self._screen.error(result, line=number)
        self._errors[result.code] += 1
        if self._errors[result.code] <= _EXAMPLES:
            self._examples[result.code].append(f"  line {number}: {result}")

    def _report(self, count: int, left: int, fault: OSError | None) -> None:
        note = self._screen.note
        for code, errors in self._errors.items():
            note(f"{screen.plural(errors, 'line')} failed: {code}, such as")
            for example in self._examples[code]:
                note(example)
        if left:
            file = None if fault else str(self._left)
            self._screen.json({"left": {"lines": left, "file": file, **self._same_jobs()}}, to_stderr=True)
            if fault:
                note(f"{screen.plural(left, 'line')} left; {self._left} could not be written: {fault.strerror}")
            else:
                note(f"{screen.plural(left, 'line')} left, in {self._left}, each with its old number")
            hint = self._ids.hint if self._ids else "to continue, with none scheduled twice"
            note(f"{hint}: {self._command(f'@{file}' if file else self._source)}")
        # Last: stdout may be closed.
        self._screen.line(f"scheduled {count - left:,} of {count:,}")

    def _same_jobs(self) -> Mapping[str, str]:
        """Return the options of a command that continues with the same jobs."""
        if self._ids:
            return {"run": str(self._ids)}
        at = {} if self._job.at is None else {"at": instant.text(instant.round_up(self._job.at))}
        delay = {} if self._job.delay is None else {"delay": f"{self._job.delay:.15g}"}
        return {"idempotency-key": self._key, **at, **delay}

    def _command(self, source: str) -> str:
        of_run = {name: getattr(self._run.target, name) for name in ("name", "url", "profile", "region")}
        of_jobs = {**self._same_jobs(), **{name: getattr(self._job, name) for name in ("kind", "tenant", "priority")}}
        before, after = _typed(of_run, connect.Target()), _typed(of_jobs, models.NewJob(payload=None))
        # What begins with a dash is no option behind `--`.
        what = ["--lines", *after, "--", self._queue, source] if self._queue.startswith("-") else None
        return shlex.join(["dueline", *before, "schedule", *(what or [self._queue, source, "--lines", *after])])


def _typed(options: Mapping[str, object], defaults: object) -> list[str]:
    """Return options as they are typed, without those that are as by default."""
    chosen = {name: value for name, value in options.items() if value != getattr(defaults, name, None)}
    return [part for name, value in chosen.items() for part in (f"--{name}", str(value))]
