"""Manual runs: run a schedule now, or backfill past times. Planned runs are not touched."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, takewhile

from dueline.core import idempotency, instant, rows
from dueline.core.idempotency import KeyClaim
from dueline.core.job import JobId, Route, State, StoredJob, SubmitResult
from dueline.core.keys import checked_call
from dueline.core.payloads import hash_of
from dueline.core.table_writer import TableWriter
from dueline.errors import InvalidSchedule, KeyReused
from dueline.schedules.changes import PATIENCE
from dueline.schedules.head import Head, occurrence, submit
from dueline.schedules.queries import get
from dueline.schedules.rule import MOMENT

# Jobs' keys are printable, so none has it.
_SEPARATOR = "\x1f"
MOST_BACKFILLED = 500


class ManualRuns:
    """Makes runs of schedules on demand: jobs on the direct route. `new_uid` returns a random UUID.

    `key` makes a call safe to repeat, whatever the schedule is by then: the same one submits the same jobs once. After
    Throttled or Unavailable the jobs may or may not be submitted.
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

        `payload` is a text as `json_text` writes it, by default the schedule's. Raises ScheduleNotFound,
        InvalidSchedule, InvalidJob, KeyReused, Throttled or Unavailable.
        """
        head, of_key = get(queue, name, table=self._table), _key_of(name, key)
        if payload is not None:
            head = replace(head, definition=replace(head.definition, payload=payload))
        first = self._first_call(head, of_key, of=payload or "")
        return self._submit([first.job], first, of_key)[0]

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
        times, of_key = _times(head, start, end), _key_of(f"{name}@", key)
        first = self._first_call(head, of_key, of=" ".join(map(instant.text, times)))
        return self._submit([_backfilled(head, at, first=first.job) for at in times], first, of_key)

    def _first_call(self, head: Head, key: str | None, *, of: str) -> KeyClaim:
        """Return the run of the first call under a key, which this call is if there is none.

        Raises KeyReused when the key was used for something else than what this call is `of`.
        """
        run = self._job(head)
        if key is None:
            return KeyClaim(job=run)
        try:
            first = idempotency.claim(key, run, payload_hash=hash_of(of), table=self._table, now=self._clock.now())
        except KeyReused:
            caller_key = key.rpartition(_SEPARATOR)[2]
            used = f"it was used for another payload or other instants of schedule {head.name!r}"
            raise KeyReused(f"idempotency_key is {caller_key!r}: {used}") from None
        return replace(first, job=replace(first.job, scheduled_for=first.job.id.due))

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


def _key_of(run: str, key: str | None) -> str | None:
    """Return the idempotency key of a run, of which the schedule is a part. Raises InvalidJob."""
    return None if key is None else f"{run}{_SEPARATOR}{checked_call(key)}"


def _backfilled(head: Head, at: datetime, *, first: StoredJob) -> StoredJob:
    """Return the job of a time in the past: its id follows from that time and the first call."""
    id = replace(first.id, uid=str(uuid.uuid5(uuid.UUID(first.id.uid), instant.text(at))))
    return replace(occurrence(head, at), id=id, expires=first.expires, exclusive=False)


def _times(head: Head, start: datetime, end: datetime) -> list[datetime]:
    following = head.definition.rule.after(max(start, instant.EPOCH) - MOMENT)
    times = list(islice(takewhile(lambda at: at < end, following), MOST_BACKFILLED + 1))
    if len(times) > MOST_BACKFILLED:
        span = f"from {instant.text(start)} to {instant.text(end)}"
        raise InvalidSchedule(f"there are over {MOST_BACKFILLED} runs {span}: backfill fewer at once")
    return times
