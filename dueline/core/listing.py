"""Listing: the scheduled jobs of a queue, in due order over all its partitions, a page at a time.

Each partition is read from where the page begins, a few rows more than its share of the page, all of them at once;
one whose rows do not reach as far as the page does is read on. So a page costs what it holds, however many jobs wait
later, on other queues, or are handed over already. Of a queue that tracks its jobs, those that workers recorded are
listed too, the last due first.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from dueline.core import instant, rows
from dueline.core.job import JobId, Partition, Route, State, StoredJob, check_kind
from dueline.core.partitions import states_of
from dueline.core.ports import ParallelMap, Table, read_all
from dueline.core.queue_settings import QueueSettings
from dueline.core.rows import Key, Row
from dueline.core.status import JobStatus, Outcome, Status, kept_fields, read_outcome, state_of
from dueline.errors import InvalidJob, JobNotFound

MOST_JOBS = 100
# However JSON is escaped on its way, these and the ids beside them stay under the 6 MB that Lambda may answer.
MOST_BYTES = 1024 * 1024
FAR_END = datetime(9999, 1, 1, tzinfo=UTC)
# Of rows of some 200 bytes, of which a filter may pick none.
_FILTERED_ROWS = 500
# Each reads four times as many rows as the one before, up to a page of 1 MB: at most 8 MB a partition.
_ROUNDS = 8
_PLACE_CHARACTERS = 200
_PLACE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z(#[!-~]{1,100})?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The jobs to list, all or of one kind: due from `start` to just before `end`, behind the key `after`, so many."""

    start: datetime = instant.EPOCH
    end: datetime = FAR_END
    after: str = ""
    limit: int = 20
    kind: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPage:
    """Jobs in due order, and the sort key behind which the next page begins; none after the last page.

    `unreadable` counts the rows among them that cannot be read.
    """

    jobs: tuple[StoredJob, ...]
    after: str | None
    unreadable: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedPage:
    """Jobs as workers recorded them, the last due first; `before` is the sort key before which the next page begins."""

    jobs: tuple[JobStatus, ...]
    before: str | None
    unreadable: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Scanned:
    """The rows of jobs in due order, not read: 1,000 payloads may be hundreds of MB; `after` as of `JobPage`."""

    rows: tuple[Row, ...]
    after: str | None
    unreadable: tuple[Row, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A queue in its table at the instant `now`, with the `states` of its partitions, which were just read."""

    queue: QueueSettings
    table: Table
    states: Mapping[Key, Row]
    now: datetime
    # Those that are read, if not all that the queue has.
    partitions: Sequence[Partition] = ()

    def cursor(self, partition: Partition) -> str:
        return rows.read_state(self.states.get(rows.state_key(partition))).cursor

    def is_scheduled(self, job: StoredJob, existing: Mapping[Key, Row]) -> bool:
        """Return whether a job is scheduled, all of whose rows are `existing`."""
        if job.expires <= self.now:
            return False
        state = rows.state_key(job.id.partition)
        with_state = {**existing, state: self.states[state]} if state in self.states else existing
        return state_of(job.id, with_state, queue=self.queue, now=self.now) is State.SCHEDULED


def list_jobs(span: Span, *, queue: QueueSettings, table: Table, now: datetime, spread: ParallelMap = map) -> JobPage:
    """List jobs of which a look-up says SCHEDULED, 1 to 100 of them, and at most 1 MiB of payloads or one job.

    What was cancelled before is not listed; a job that is dispatched meanwhile may be. A page behind much that is
    cancelled, or of another kind, may hold fewer jobs than there are, even none: the end is where `after` is None.
    Jobs of partitions that the queue had before their count was lowered are not listed. A row that cannot be read,
    which its tick will park, is counted and logged. Raises InvalidJob for a limit or a kind, Throttled or Unavailable.
    """
    _check(span)
    states = read_states(queue, table=table, spread=spread)
    scanned = scan(span, snapshot=Snapshot(queue=queue, table=table, states=states, now=now), spread=spread)
    jobs = _fitting(scanned.rows)
    after = scanned.after if len(jobs) == len(scanned.rows) else rows.job_key(jobs[-1].id)[1]
    unreadable = [row for row in scanned.unreadable if after is None or _sort_key(row) <= after]
    return JobPage(jobs=tuple(jobs), after=after, unreadable=rows.log_unreadable(unreadable))


def _check(span: Span) -> None:
    if not 1 <= span.limit <= MOST_JOBS:
        raise InvalidJob(f"limit is {span.limit}: it must be from 1 to {MOST_JOBS}")
    check_kind(span.kind)


def list_tracked(
    span: Span,
    *,
    state: State | None = None,
    queue: QueueSettings,
    table: Table,
    now: datetime,
    spread: ParallelMap = map,
) -> TrackedPage:
    """List jobs of which workers recorded an attempt, all or those in one state, the last due first.

    `after` of the span is the `before` of an earlier page. Each is as its last attempt left it: what no worker has
    received is not among them, and a job whose worker died stays RUNNING. A page costs a request a partition and two
    rows a job, however many there are. So with a filter it may hold fewer than there are, even none: the end is where
    `before` is None. Partitions are as of `list_jobs`.
    Raises InvalidJob as that does, and for a queue that does not track its jobs; Throttled or Unavailable.
    """
    _check(span)
    if not queue.track:
        raise InvalidJob(f"track of queue {queue.name} is false: it must be true for its workers to record jobs")
    recorded, reached = _recorded(span, is_filtered=bool(state or span.kind), queue=queue, table=table, spread=spread)
    jobs, unreadable, last = list[tuple[JobId, Outcome]](), list[Row](), ""
    for row in recorded:
        if len(jobs) == span.limit:
            reached = last
            break
        last = _sort_key(row)
        try:
            id, outcome = _tracked(row)
        except (ValueError, JobNotFound):
            unreadable.append(row)
            continue
        if rows.is_live(row, now=now) and state in (None, outcome.state) and span.kind in (None, outcome.kind):
            jobs.append((id, outcome))
    statuses = _with_routes(jobs, table=table, spread=spread)
    return TrackedPage(jobs=tuple(statuses), before=reached or None, unreadable=rows.log_unreadable(unreadable))


def _recorded(
    span: Span, *, is_filtered: bool, queue: QueueSettings, table: Table, spread: ParallelMap
) -> tuple[list[Row], str]:
    """Return rows of outcomes over all partitions, the last first, and the sort key that they reach: "" for the end."""
    partitions = queue.all_partitions()
    most = _FILTERED_ROWS if is_filtered else _share(span.limit, partitions)
    start, end = (instant.text(instant.round_up(at)) for at in (span.start, span.end))
    until = min(span.after or end, end)
    pages = list(spread(lambda each: table.outcomes(each, after=start, until=until, limit=most), partitions))
    # Before the last row of a page that has more, others may have rows that come later on.
    reached = max((_sort_key(page.rows[-1]) for page in pages if page.more), default="")
    recorded = [row for page in pages for row in page.rows if reached <= _sort_key(row) < until]
    return sorted(recorded, key=_sort_key, reverse=True), reached


def _tracked(row: Row) -> tuple[JobId, Outcome]:
    """Return the job in a row of an outcome, whose key has no route. Raises ValueError or JobNotFound."""
    (queue, _, number), (due, uid) = (part.split("#") for part in rows.key(row))
    id = JobId.parse(f"{queue}.{number}.{Route.TABLE}.{instant.epoch_ms(instant.parse(due))}.{uid}")
    return id, read_outcome(row)


def _with_routes(tracked: Sequence[tuple[JobId, Outcome]], *, table: Table, spread: ParallelMap) -> list[JobStatus]:
    """Return jobs with their routes and statuses. By the table's route, a job has its row there, or was parked."""
    keys = {key for id, _ in tracked for key in (rows.job_key(id), rows.parked_key(id))}
    existing = read_all(keys, table=table, spread=spread).whole("rows of jobs")
    statuses = []
    for id, outcome in tracked:
        row = existing.get(rows.job_key(id))
        route = Route.TABLE if row or rows.parked_key(id) in existing else Route.DIRECT
        status = Status(state=outcome.state, outcome=outcome, **kept_fields(row))
        statuses.append((replace(id, route=route), status))
    return statuses


def read_states(queue: QueueSettings, *, table: Table, spread: ParallelMap = map) -> Mapping[Key, Row]:
    """Read the states of a queue's partitions. Raises Unavailable when one of them is left unread, or Throttled."""
    return states_of(queue.all_partitions(), table=table, spread=spread).whole(f"states of queue {queue.name}")


def scan(span: Span, *, snapshot: Snapshot, spread: ParallelMap = map) -> Scanned:
    """Return the first scheduled jobs of a span, up to its limit, as far as a bounded number of reads finds."""
    slices = _slices(span, snapshot)
    until = instant.text(instant.round_up(span.end))
    share = _share(span.limit, slices)
    for round in range(_ROUNDS):
        behind = _behind(slices, span.limit, until)
        if not behind:
            break
        list(spread(partial(_Slice.read_on, snapshot=snapshot, until=until, limit=share * 4**round), behind))
    reached = min(slice.reached for slice in slices)
    existing = [row for row in _in_order(slices) if _sort_key(row) <= reached]
    if len(existing) > span.limit:
        reached = _sort_key(existing[span.limit - 1])
    unreadable = (row for slice in slices for row in slice.unreadable if _sort_key(row) <= reached)
    after = reached if reached < until else None
    return Scanned(rows=tuple(existing[: span.limit]), after=after, unreadable=tuple(unreadable))


def _share(limit: int, slices: Sequence[object]) -> int:
    """Return how many rows to read of each slice: one job and one row more than its share show if there is more."""
    return min(limit, 2 * -(-limit // len(slices))) + 2


def place_text(after: str) -> str:
    """Return a place between two pages as text that says nothing to its reader, and fits into a URL."""
    return base64.urlsafe_b64encode(json.dumps(after).encode()).decode().rstrip("=")


def read_place(text: str) -> str:
    """Return the place that `place_text` wrote out. Raises ValueError when it is none."""
    if len(text) > _PLACE_CHARACTERS:
        raise ValueError("it is too long")
    place = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    if not (isinstance(place, str) and _PLACE.fullmatch(place)):
        raise ValueError("it names no place between two pages")
    return place


@dataclass(kw_only=True, slots=True)
class _Slice:
    """What is read of one partition: the rows of jobs, of one kind or all, that are scheduled up to the key `reached`.

    `partial_job` are the rows of the next job, of which there may be more on the next page. `unreadable` are rows of
    jobs that cannot be read and that no tick has parked yet.
    """

    partition: Partition
    reached: str
    kind: str | None = None
    rows: list[Row] = field(default_factory=list)
    partial_job: list[Row] = field(default_factory=list)
    unreadable: list[Row] = field(default_factory=list)

    def read_on(self, *, snapshot: Snapshot, until: str, limit: int) -> None:
        after = str(self.partial_job[-1]["sk"]) if self.partial_job else self.reached
        page = snapshot.table.page(self.partition, after=after, until=until, limit=limit)
        of_jobs = [list(group) for _, group in groupby([*self.partial_job, *page.rows], key=_prefix)]
        self.partial_job = of_jobs.pop() if page.more and of_jobs else []
        for of_job in of_jobs:
            self._add({rows.key(row): row for row in of_job}, snapshot)
        if not page.more:
            self.reached = until
        elif of_jobs:
            self.reached = str(of_jobs[-1][-1]["sk"])

    def _add(self, of_job: Mapping[Key, Row], snapshot: Snapshot) -> None:
        row, job = _job_among(of_job)
        if row is None:
            return
        if job is None:
            kinds = {rows.prefix_and_kind(sk)[1] for _, sk in of_job}
            self.unreadable += [] if kinds & {rows.CANCELLED, rows.HANDLED} else [row]
        elif self.kind in (None, job.kind) and snapshot.is_scheduled(job, of_job):
            self.rows.append(row)


def _job_among(existing: Mapping[Key, Row]) -> tuple[Row | None, StoredJob | None]:
    """Return which of these rows holds a job, and that job unless it cannot be read."""
    row = next((row for (_, sk), row in existing.items() if rows.prefix_and_kind(sk)[1] == rows.JOB), None)
    try:
        return row, None if row is None else rows.read_job(row)
    except InvalidJob:
        return row, None


def _slices(span: Span, snapshot: Snapshot) -> list[_Slice]:
    start = max(instant.text(instant.round_up(span.start)), span.after)
    return [
        _Slice(partition=partition, reached=max(start, snapshot.cursor(partition)), kind=span.kind)
        for partition in snapshot.partitions or snapshot.queue.all_partitions()
    ]


def _behind(slices: Sequence[_Slice], limit: int, until: str) -> list[_Slice]:
    """Return the slices that may yet hold one of the first `limit` jobs, or show that there is one more."""
    existing = _in_order(slices)
    needed = _sort_key(existing[limit]) if len(existing) > limit else until
    return [slice for slice in slices if slice.reached < needed]


def _in_order(slices: Sequence[_Slice]) -> list[Row]:
    return sorted((row for slice in slices for row in slice.rows), key=_sort_key)


def _sort_key(row: Row) -> str:
    return rows.key(row)[1]


def _prefix(row: Row) -> str:
    return rows.prefix_and_kind(str(row["sk"]))[0]


def _fitting(existing: Iterable[Row]) -> list[StoredJob]:
    """Read as many jobs as fit into a page with their payloads, at least one."""
    left, jobs = MOST_BYTES, list[StoredJob]()
    for job in map(rows.read_job, existing):
        left -= job.size
        if jobs and left < 0:
            break
        jobs.append(job)
    return jobs
