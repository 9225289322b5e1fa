"""Running: have a schedule run now, or for nominals that have passed. What it plans by itself is not touched."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from dueline.errors import InvalidSchedule
from dueline.model import instant
from dueline.model.job import Job, JobId, Route
from dueline.ports import Clock, Spread, Table
from dueline.protocol import keys
from dueline.protocol.offload import hash_of
from dueline.protocol.table_route import TableRoute
from dueline.schedules.changes import PATIENCE
from dueline.schedules.head import Head
from dueline.schedules.occurrence import occurrence
from dueline.schedules.orders import Order, claim, is_claimed, key_of
from dueline.schedules.reading import get
from dueline.schedules.submitting import submit

MOST_BACKFILLED = 500
_MOMENT = timedelta(microseconds=1)


def _random_uid() -> str:
    return str(uuid.uuid4())


class Runs:
    """Makes runs of schedules on demand: jobs on the direct route. `new_uid` returns a random UUID.

    `key` makes a call safe to repeat: the same one submits the same jobs once, by the schedule as the first one found
    it. After Throttled or Unavailable the jobs may or may not be submitted.
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
        head, asked = get(queue, name, table=self._table), ""
        if payload is not None:
            head = replace(head, definition=replace(head.definition, payload=payload))
            asked = head.definition.payload
        of_key = key_of(name, key)
        run = self._ordered(head, of_key, asked=asked).run
        self._submit([run], [of_key])
        return run

    def backfill(self, queue: str, name: str, *, start: datetime, end: datetime, key: str | None = None) -> list[Job]:
        """Submit a job, due now, for each nominal from `start` to just before `end`, by the rule as it is now.

        They may overlap, whatever the schedule says of its runs. Raises InvalidSchedule when there are over 500, when
        `end` is before `start` or in the future; and as `run_now` does.
        """
        now, head = self._present(), get(queue, name, table=self._table)
        _check_span(start, end, now=now)
        of_key = key_of(f"{name}@", key)
        self._check_number(head, start, end, key=of_key)
        # By the rule of the first call, too: a change between two would add runs of the second.
        asked = f"{start.astimezone(UTC).isoformat()}/{end.astimezone(UTC).isoformat()}"
        head = self._ordered(head, of_key, asked=asked).head
        nominals = _nominals(head, start, end)
        jobs = [replace(self._job(head, each), exclusive=False) for each in nominals]
        of_keys = [key_of(f"{name}@{instant.text(each)}", key) for each in nominals]
        runs = list(self._spread(self._claim, zip(jobs, of_keys, strict=True)))
        self._submit(runs, of_keys)
        return runs

    def _check_number(self, head: Head, start: datetime, end: datetime, *, key: str | None) -> None:
        """Raise InvalidSchedule for too many runs, before a key is taken. A repeat goes by its first call's rule."""
        try:
            _nominals(head, start, end)
        except InvalidSchedule:
            if key is None or not is_claimed(key, head.queue, table=self._table, now=self._clock.now()):
                raise

    def _ordered(self, head: Head, key: str | None, *, asked: str) -> Order:
        """Return the order of the first call under a key, which is this one without a key."""
        run = self._job(head)
        if key is None:
            return Order(head=head, run=run)
        return claim(key, head, run, asked=asked, table=self._table, now=self._clock.now())

    def _job(self, head: Head, nominal: datetime | None = None) -> Job:
        """Return a job of a schedule that is due now, its nominal now unless it is given."""
        due = self._present()
        id = JobId(partition=head.partition, route=Route.DIRECT, due=due, uid=self._new_uid())
        return replace(occurrence(head, nominal or due), id=id, expires=due + head.retention)

    def _present(self) -> datetime:
        return instant.from_epoch_ms(instant.epoch_ms(self._clock.now()))

    def _submit(self, runs: Sequence[Job], of_keys: Sequence[str | None]) -> None:
        """Submit those that no earlier call did, and mark the keys of all as done."""
        until = self._clock.monotonic() + self._patience.total_seconds()
        submit([run for run in runs if not isinstance(run, keys.Repeat)], route=self._route, until=until)
        done = [(key, run.id) for run, key in zip(runs, of_keys, strict=True) if key is not None]
        keys.note_done(done, table=self._table, spread=self._spread)

    def _claim(self, submitted: tuple[Job, str | None]) -> Job:
        run, key = submitted
        if key is None:
            return run
        now = self._clock.now()
        return keys.claim(key, run, payload_hash=hash_of(run.payload), table=self._table, now=now)


def _check_span(start: datetime, end: datetime, *, now: datetime) -> None:
    if end < start:
        raise InvalidSchedule(f"to is {instant.text(end)}: it must not be before from, which is {instant.text(start)}")
    if end > now:
        raise InvalidSchedule(f"to is {instant.text(end)}: it must not be in the future, it is {instant.text(now)} now")


def _nominals(head: Head, start: datetime, end: datetime) -> list[datetime]:
    # No rule names an instant before 1970.
    following = head.definition.rule.after(max(start, instant.EPOCH) - _MOMENT)
    nominals = list(islice(takewhile(lambda nominal: nominal < end, following), MOST_BACKFILLED + 1))
    if len(nominals) > MOST_BACKFILLED:
        span = f"from {instant.text(start)} to {instant.text(end)}"
        raise InvalidSchedule(f"there are over {MOST_BACKFILLED} runs {span}: ask for fewer at once")
    return nominals
