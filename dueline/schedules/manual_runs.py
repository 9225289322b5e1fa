"""Manual runs: run a schedule now, or backfill past times. Planned runs are not touched."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from dueline.core import idempotency, instant, rows
from dueline.core.idempotency import KeyClaim
from dueline.core.job import JobId, Route, State, StoredJob
from dueline.core.payloads import hash_of
from dueline.core.submit import SubmitResult
from dueline.core.table_writer import TableWriter
from dueline.core.text import shown
from dueline.errors import InvalidJob, InvalidSchedule, KeyReused
from dueline.schedules.changes import PATIENCE
from dueline.schedules.head import Head, occurrence, packed_definition, read_definition, submit
from dueline.schedules.queries import get

# The schedule is part of the idempotency key as well.
MAX_RUN_KEY_CHARACTERS = 128
# Jobs' keys are printable, so none has it.
_SEPARATOR = "\x1f"


def key_of(run: str, key: str | None) -> str | None:
    """Return the idempotency key of a run. Raises InvalidJob unless `key` has 1 to 128 printable ASCII characters."""
    if key is None:
        return None
    if not (isinstance(key, str) and 1 <= len(key) <= MAX_RUN_KEY_CHARACTERS and key.isascii() and key.isprintable()):
        raise InvalidJob(f"key is {shown(key)}: it must have 1 to {MAX_RUN_KEY_CHARACTERS} printable ASCII characters")
    return f"{run}{_SEPARATOR}{key}"


MOST_BACKFILLED = 500
_MOMENT = timedelta(microseconds=1)


class ManualRuns:
    """Makes runs of schedules on demand: jobs on the direct route. `new_uid` returns a random UUID.

    `key` makes a call safe to repeat: the same one submits the same jobs once, by the schedule as the first one read
    it. After Throttled or Unavailable the jobs may or may not be submitted.
    """

    def __init__(
        self,
        route: TableWriter,
        *,
        patience: timedelta = PATIENCE,
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._route, self._table, self._clock, self._spread = route, route.table, route.clock, route.spread
        self._patience, self._new_uid = patience, new_uid

    def run_now(self, queue: str, name: str, *, payload: str | None = None, key: str | None = None) -> SubmitResult:
        """Submit a job of a schedule, scheduled for and due now. A paused schedule runs, too.

        `payload` is JSON text, by default the schedule's. Raises ScheduleNotFound, InvalidSchedule, InvalidJob,
        KeyReused, Throttled or Unavailable.
        """
        head, parameters = get(queue, name, table=self._table), ""
        of_key = key_of(name, key)
        if payload is not None:
            head = replace(head, definition=replace(head.definition, payload=payload))
            parameters = head.definition.payload
        _, run = self._first_call(head, of_key, parameters=parameters)
        return self._submit([run.job], run, of_key)[0]

    def backfill(
        self, queue: str, name: str, *, start: datetime, end: datetime, key: str | None = None
    ) -> list[SubmitResult]:
        """Submit a job, due now, for each time of the rule as it is now from `start` to just before `end`.

        They may overlap, whatever the schedule says of its runs. Raises InvalidSchedule when there are over 500, when
        `end` is before `start` or in the future; and as `run_now` does.
        """
        now, head = self._present(), get(queue, name, table=self._table)
        if end < start:
            must = f"it must not be before from, which is {instant.text(start)}"
            raise InvalidSchedule(f"to is {instant.text(end)}: {must}")
        if end > now:
            must = f"it must not be in the future, it is {instant.text(now)} now"
            raise InvalidSchedule(f"to is {instant.text(end)}: {must}")
        of_key = key_of(f"{name}@", key)
        try:
            _times(head, start, end)
        except InvalidSchedule:
            # A repeat has the times of the first call.
            if of_key is None or not self._is_claimed(rows.idempotency_key(queue, of_key)):
                raise
        # By the rule of the first call: after a change, the second would add runs.
        parameters = f"{start.astimezone(UTC).isoformat()}/{end.astimezone(UTC).isoformat()}"
        head, first = self._first_call(head, of_key, parameters=parameters)
        jobs = [_backfilled(head, at, first=first.job) for at in _times(head, start, end)]
        return self._submit(jobs, first, of_key)

    def _first_call(self, head: Head, key: str | None, *, parameters: str) -> tuple[Head, KeyClaim]:
        """Return the schedule as the first call under a key read it, and its run; this call is it if there is none.

        `parameters` is what the caller gave: a schedule that was changed between two calls
        makes no other run of the second. Raises KeyReused when the key was used with other parameters.
        """
        run, parameters_hash = self._job(head), hash_of(parameters)
        if key is None:
            return head, KeyClaim(job=run)
        own = rows.idempotency_row(run, key, payload_hash=parameters_hash)
        own = {**own, "definition": packed_definition(head.definition)}
        row = self._table.claim(own, now=self._clock.now())
        try:
            first = idempotency.first_of(row, key, run, payload_hash=parameters_hash)
        except KeyReused:
            caller_key = key.rpartition(_SEPARATOR)[2]
            used = f"it was used for something else of schedule {head.name!r}, another payload or other instants"
            raise KeyReused(f"key is {shown(caller_key)}: {used}") from None
        then = replace(head, definition=read_definition(row)) if isinstance(row.get("definition"), bytes) else head
        made = replace(occurrence(then, first.job.id.due), id=first.job.id, expires=first.job.expires)
        return then, replace(first, job=made)

    def _is_claimed(self, key: rows.Key) -> bool:
        return rows.is_live(self._table.read([key]).whole(f"row {key}").get(key), now=self._clock.now())

    def _job(self, head: Head) -> StoredJob:
        """Return a job of a schedule that is scheduled for and due now."""
        due = self._present()
        id = JobId(partition=head.partition, route=Route.DIRECT, due=due, uid=self._new_uid())
        return replace(occurrence(head, due), id=id, expires=due + head.retention)

    def _present(self) -> datetime:
        return instant.from_epoch_ms(instant.epoch_ms(self._clock.now()))

    def _submit(self, jobs: Sequence[StoredJob], first: KeyClaim, key: str | None) -> list[SubmitResult]:
        """Submit jobs unless an earlier call under the key did, and mark that as done."""
        if not first.is_done:
            until = self._clock.monotonic() + self._patience.total_seconds()
            submit(jobs, route=self._route, until=until)
            if key is not None:
                claimed = (rows.idempotency_key(first.job.id.queue, key), first.job.id)
                idempotency.note_done([claimed], table=self._table, spread=self._spread)
        return [SubmitResult(job=job, state=None if first.is_done else State.DISPATCHED) for job in jobs]


def _backfilled(head: Head, at: datetime, *, first: StoredJob) -> StoredJob:
    """Return the job of a time in the past: its id follows from that time and the first call."""
    id = replace(first.id, uid=str(uuid.uuid5(uuid.UUID(first.id.uid), instant.text(at))))
    return replace(occurrence(head, at), id=id, expires=first.expires, exclusive=False)


def _times(head: Head, start: datetime, end: datetime) -> list[datetime]:
    following = head.definition.rule.after(max(start, instant.EPOCH) - _MOMENT)
    times = list(islice(takewhile(lambda at: at < end, following), MOST_BACKFILLED + 1))
    if len(times) > MOST_BACKFILLED:
        span = f"from {instant.text(start)} to {instant.text(end)}"
        raise InvalidSchedule(f"there are over {MOST_BACKFILLED} runs {span}: backfill fewer at once")
    return times
