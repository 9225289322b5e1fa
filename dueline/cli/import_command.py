"""Schedule payloads from a file, one a line: all are checked before any is sent, and can be sent again."""

import json
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import tee
from tempfile import SpooledTemporaryFile
from typing import IO

import typer

from dueline.cli import connect, options, screen
from dueline.client import client, job_ids, models
from dueline.core import instant, request, retry
from dueline.core.job import MAX_OFFLOADED_BYTES, JobId, Partition, Route, queue_name
from dueline.core.text import plural, shown
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
                    value = options.json_value(line, f"line {number}")
                    # In ASCII, as it is sent, it has some five times as many bytes at most.
                    if len(line) > MAX_OFFLOADED_BYTES // 6 and len(request.json_text(value)) > MAX_OFFLOADED_BYTES:
                        raise typer.BadParameter(f"line {number} has over {MAX_OFFLOADED_BYTES} bytes of JSON")
                    count, last = count + 1, number
        yield Lines(kept=kept, count=count, last=last)


def _is_blank(line: bytes) -> bool:
    """Return whether a line has only what JSON treats as space."""
    return not line.strip(b" \t\r\n")


def id_terms(dueline_client: client.Client, queue: str) -> job_ids.IdParameters | None:
    """Return what ids of a queue's jobs are made with, retrying as often as the client does.

    Returns None for a queue that takes no jobs yet. Raises QueueNotFound, Forbidden, Throttled or Unavailable.
    """
    name = queue_name(queue)
    return dueline_client._calls.run(lambda: dueline_client._api.id_parameters(name))


# An import tries as often as it takes, and gives up after so long without any progress.
PATIENCE = retry.Patience(attempts=1000, seconds=180)
_EXAMPLES = 3
_TOKEN = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,12})", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportIds:
    """The ids of one run's lines: UUIDs of version 5 of the run's `number` and the line's.

    All are due at once, by the table's route: in SQS, a repeat is another message. Up to 100 neighbours share one of
    `partitions`, as the jobs of one call do. Ids cost nothing, and the table has them until the job is due.
    """

    number: uuid.UUID
    partitions: int
    due: datetime

    @classmethod
    def parse(cls, token: str) -> "ImportIds":
        """Return the ids that a token names. Raises typer.BadParameter."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            form = "{UUID}.{partitions}.{due in ms}, as an earlier run printed it"
            raise typer.BadParameter(f"{shown(token, most=200)} is no run: it must be of the form {form}")
        number, partitions, due_ms = match.groups()
        return cls(number=uuid.UUID(number), partitions=int(partitions), due=instant.from_epoch_ms(int(due_ms)))

    def __str__(self) -> str:
        return f"{self.number}.{self.partitions}.{instant.epoch_ms(self.due)}"

    def id(self, queue: str, line: int) -> JobId:
        first = self._uid(line - line % request.JOBS_TO_A_PARTITION)
        partition = Partition(queue=queue, number=request.partition_of(first, self.partitions))
        return JobId(partition=partition, route=Route.TABLE, due=self.due, uid=self._uid(line))

    def _uid(self, line: int) -> str:
        return str(uuid.uuid5(self.number, str(line)))


def ids_of_run(
    terms: job_ids.IdParameters, *, at: datetime | None, delay: float | timedelta | None
) -> ImportIds | None:
    """Return the ids of a run that starts now, None where its jobs go straight to SQS.

    Raises InvalidJob for a time that no job can be due at.
    """
    # By AWS's clock.
    checked = models.NewJob(payload=None, at=at, delay=delay).checked(now=terms.moment.latest)
    due = terms.due(at=checked.at, delay=checked.delay)
    is_in_table = terms.route(due) is Route.TABLE
    return ImportIds(number=uuid.uuid4(), partitions=terms.partitions, due=due) if is_in_table else None


class Import:
    """One run over lines, each a job with an id or key of its own, so that all can be sent again.

    They are as `job` is. It has an idempotency key of the caller's, or `ids` are those of an earlier run; otherwise
    they have new ids, or where these do not prevent repeats, keys such as `{key}-7`: two writes more a job, remembered
    for the retention. The deployment is found before any line is read. Raises what `connect.client` raises,
    QueueNotFound, InvalidJob for what no job can have, and typer.BadParameter.
    """

    def __init__(self, run: connect.CommandRun, queue: str, job: models.NewJob, *, ids: ImportIds | None) -> None:
        for name in ("at", "delay", "idempotency_key"):
            if ids and getattr(job, name) is not None:
                reason = "a run says which jobs its lines are, and when they are due"
                option = name.replace("_", "-")
                raise typer.BadParameter(f"--run and --{option} are both given: give one of them, {reason}")
        self._screen, self._queue = run.screen, queue_name(queue)
        self._client = connect.client(run.target, patience=PATIENCE)
        self._job = replace(job, delay=job.checked(now=None).delay)
        self._ids, self._key = ids, job.idempotency_key or str(uuid.uuid4())
        # By their code: how many errors there were, and the first few of them.
        self._errors: Counter[str] = Counter()
        self._examples: defaultdict[str, list[str]] = defaultdict(list)
        self._done, self._code = 0, screen.DONE

    def carry_out(self, lines: Lines) -> None:
        """Schedule these lines and report the results, even of an interrupted run. Exits with the highest code.

        Raises InvalidJob, before any is sent, when the idempotency key is too long for the last of them.
        """
        self._job_of(None, lines.last).checked(now=None)
        try:
            # Not before the lines are read, which may take long: a delay counts from now.
            is_new = lines.count and self._job.idempotency_key is None and self._ids is None
            if is_new and (terms := id_terms(self._client, self._queue)):
                self._ids = ids_of_run(terms, at=self._job.at, delay=self._job.delay)
            self._send(lines)
        finally:
            self._report(lines.count)
        screen.end_with([self._code])

    def _job_of(self, payload: object, line: int) -> models.NewJob:
        if self._ids:
            id = str(self._ids.id(self._queue, line))
            return replace(self._job, payload=payload, id=id, at=None, delay=None)
        return replace(self._job, payload=payload, idempotency_key=f"{self._key}-{line}")

    def _send(self, lines: Lines) -> None:
        to_send, to_report = tee(lines)
        jobs = (self._job_of(json.loads(line), number) for number, line in to_send)
        results = self._client.schedule_each(self._queue, jobs)
        with closing(results), self._screen.progress("scheduling") as bar:
            for place, (result, (number, _)) in enumerate(zip(results, to_report, strict=True), start=1):
                self._note(result, number)
                bar(place, lines.count)

    def _note(self, result: models.Job | DuelineError, number: int) -> None:
        if not isinstance(result, DuelineError):
            self._done += 1
            self._screen.ids(result.id)
            self._screen.json({"line": number, **screen.json_of(result)})
            return
        self._code = max(self._code, result.exit_code)
        if self._screen.as_json:
            self._screen.error(result, line=number)
        self._errors[result.code] += 1
        if self._errors[result.code] <= _EXAMPLES:
            self._examples[result.code].append(f"  line {number}: {result}")

    def _report(self, count: int) -> None:
        note, left = self._screen.note, count - self._done
        for code, errors in self._errors.items():
            note(f"{plural(errors, 'line')} failed: {code}, such as")
            for example in self._examples[code]:
                note(example)
        if left:
            option, value = ("run", str(self._ids)) if self._ids else ("idempotency-key", self._key)
            self._screen.json({"left": {"lines": left, option: value}}, to_stderr=True)
            until = f" until some minutes before {instant.text(self._ids.due)}" if self._ids else ""
            command = f"the same command and lines, {'without a time, ' if self._ids else ''}with --{option} {value}"
            note(f"{plural(left, 'line')} left; to continue, with none scheduled twice{until}: {command}")
        # Last: stdout may be closed.
        self._screen.line(f"scheduled {self._done:,} of {count:,}")
