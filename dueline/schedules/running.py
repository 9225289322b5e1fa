"""Running: have a schedule run now, or for nominals that have passed. What it plans by itself is not touched."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, takewhile

from dueline.errors import InvalidJob, InvalidSchedule
from dueline.model import instant
from dueline.model.job import Job, JobId, Route
from dueline.model.text import shown
from dueline.ports import Clock, Spread, Table
from dueline.protocol import keys
from dueline.protocol.offload import hash_of
from dueline.protocol.table_route import TableRoute
from dueline.schedules.changes import PATIENCE
from dueline.schedules.head import Head
from dueline.schedules.occurrence import occurrence
from dueline.schedules.reading import get
from dueline.schedules.submitting import submit

MOST_BACKFILLED = 500
# The schedule and the nominal are part of the idempotency key as well.
MAX_KEY_CHARACTERS = 128
# No key of a job has it: those are printable.
_SEPARATOR = "\x1f"
_MOMENT = timedelta(microseconds=1)


def _random_uid() -> str:
    return str(uuid.uuid4())


class Runs:
    """Makes runs of schedules on demand: jobs on the direct route. `new_uid` returns a random UUID.

    `key` makes a call safe to repeat: the same one submits the same jobs once. After Throttled or Unavailable the jobs
    may or may not be submitted.
    """

    def __init__(
        self,
        *,
        table: Table,
        route: TableRoute,
        clock: Clock,
        spread: Spread = map,
        patience: timedelta = PATIENCE,
        new_uid: Callable[[], str] = _random_uid,
    ) -> None:
        self._table = table
        self._route = route
        self._clock = clock
        self._new_uid = new_uid
        self._spread = spread
        self._patience = patience

    def run_now(self, queue: str, name: str, *, payload: str | None = None, key: str | None = None) -> Job:
        """Submit a job of a schedule that is due now, its nominal now; return it. A paused schedule runs as well.

        `payload` is JSON text, by default the schedule's. Raises ScheduleNotFound, InvalidSchedule, InvalidJob,
        KeyReused, Throttled or Unavailable.
        """
        head = get(queue, name, table=self._table)
        if payload is not None:
            head = replace(head, definition=replace(head.definition, payload=payload))
        job = self._job(head, self._present())
        (run,) = self._submit([(job, _key_of(name, key))])
        return run

    def backfill(self, queue: str, name: str, *, start: datetime, end: datetime, key: str | None = None) -> list[Job]:
        """Submit a job, due now, for each nominal from `start` to just before `end`, by the rule as it is now.

        They may overlap, whatever the schedule says of its runs. Raises InvalidSchedule when there are over 500, or
        `end` lies in the future; and as `run_now` does.
        """
        now, head = self._present(), get(queue, name, table=self._table)
        if end > now:
            raise InvalidSchedule(f"to is {instant.text(end)}: it must not be in the future")
        # No rule names an instant before 1970.
        following = head.definition.rule.after(max(start, instant.EPOCH) - _MOMENT)
        nominals = list(islice(takewhile(lambda nominal: nominal < end, following), MOST_BACKFILLED + 1))
        if len(nominals) > MOST_BACKFILLED:
            raise InvalidSchedule(f"there are over {MOST_BACKFILLED} runs from {start} to {end}: ask for fewer at once")
        jobs = [replace(self._job(head, each), exclusive=False) for each in nominals]
        of_keys = [_key_of(f"{name}@{instant.text(each)}", key) for each in nominals]
        return self._submit(list(zip(jobs, of_keys, strict=True)))

    def _job(self, head: Head, nominal: datetime) -> Job:
        """Return a job of a schedule that is due now."""
        due = self._present()
        id = JobId(partition=head.partition, route=Route.DIRECT, due=due, uid=self._new_uid())
        return replace(occurrence(head, nominal), id=id, expires=due + head.retention)

    def _present(self) -> datetime:
        return instant.from_epoch_ms(instant.epoch_ms(self._clock.now()))

    def _submit(self, jobs: Sequence[tuple[Job, str | None]]) -> list[Job]:
        """Submit jobs, each once under its key; return those that are submitted by now under these keys."""
        until = self._clock.monotonic() + self._patience.total_seconds()
        claimed = list(self._spread(self._claim, jobs))
        submit([job for job in claimed if not isinstance(job, keys.Repeat)], route=self._route, until=until)
        done = [(key, job.id) for job, (_, key) in zip(claimed, jobs, strict=True) if key is not None]
        keys.note_done(done, table=self._table, spread=self._spread)
        return claimed

    def _claim(self, submitted: tuple[Job, str | None]) -> Job:
        job, key = submitted
        if key is None:
            return job
        now = self._clock.now()
        claimed = keys.claim(key, job, payload_hash=hash_of(job.payload), table=self._table, now=now)
        is_now = job.nominal == job.id.due
        return replace(claimed, nominal=claimed.id.due) if is_now else claimed


def _key_of(run: str, key: str | None) -> str | None:
    """Return the idempotency key of a run. Raises InvalidJob unless `key` has 1 to 128 printable ASCII characters."""
    if key is None:
        return None
    if not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()):
        raise InvalidJob(f"key is {shown(key)}: it must have 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")
    return f"{run}{_SEPARATOR}{key}"
