"""Listing: the scheduled jobs of a queue, in due order over all its partitions, a page at a time.

Each partition is read from where the page begins, a few rows more than its share of the page, all of them at once;
one whose rows do not reach as far as the page does is read on. So a page costs what it holds, however many jobs wait
later, on other queues, or are handed over already.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from dueline.errors import InvalidJob, Unavailable
from dueline.lookup.status import state_of
from dueline.model import instant, rows
from dueline.model.job import Job, Partition, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.rows import Key, Row
from dueline.ports import Spread, Table
from dueline.protocol.partitions import states_of

MOST_JOBS = 100
# However JSON is escaped on its way, these and the ids beside them stay under the 6 MB that Lambda may answer.
MOST_BYTES = 1024 * 1024
FAR_END = datetime(9999, 1, 1, tzinfo=UTC)
# Each reads four times as many rows as the one before, up to a page of 1 MB: at most 8 MB a partition.
_ROUNDS = 8
_PLACE_CHARACTERS = 200
_PLACE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z(#[!-~]{1,100})?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The jobs that are asked for: due from `start` to just before `end`, behind the sort key `after`, so many."""

    start: datetime = instant.EPOCH
    end: datetime = FAR_END
    after: str = ""
    limit: int = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """Jobs in due order, and the sort key behind which the next page begins; none after the last page."""

    jobs: tuple[Job, ...]
    after: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Scanned:
    """The rows of jobs in due order, not read: 1,000 payloads may be hundreds of MB; `after` as of `Listed`."""

    rows: tuple[Row, ...]
    after: str | None


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

    def scheduled(self, of_job: Iterable[Row]) -> Row | None:
        """Return the row of the job that all its rows tell of, if it is scheduled."""
        found = {rows.key(row): row for row in of_job}
        row, job = _job_among(found)
        if job is None or job.expires <= self.now:
            return None
        state = rows.state_key(job.id.partition)
        found |= {state: self.states[state]} if state in self.states else {}
        is_scheduled = state_of(job.id, found, queue=self.queue, now=self.now) is State.SCHEDULED
        return row if is_scheduled else None


def list_jobs(span: Span, *, queue: QueueSettings, table: Table, now: datetime, spread: Spread = map) -> Listed:
    """List jobs of which a look-up says SCHEDULED, 1 to 100 of them, and at most 1 MiB of payloads or one job.

    What was cancelled before is not listed; a job that is dispatched meanwhile may be. A page behind much that is
    cancelled may hold fewer jobs than there are, even none: the end is where `after` is None. Partitions are those that
    the queue has now: jobs of one that it had before its count was lowered are dispatched, looked up and cancelled like
    any, but not listed. Nor is a row that cannot be read, which its tick will park.
    Raises InvalidJob when `limit` is not from 1 to 100, Throttled or Unavailable.
    """
    if not 1 <= span.limit <= MOST_JOBS:
        raise InvalidJob(f"limit is {span.limit}: it must be from 1 to {MOST_JOBS}")
    states = read_states(queue, table=table, spread=spread)
    scanned = scan(span, snapshot=Snapshot(queue=queue, table=table, states=states, now=now), spread=spread)
    jobs = _fitting(scanned.rows)
    after = scanned.after if len(jobs) == len(scanned.rows) else rows.job_key(jobs[-1].id)[1]
    return Listed(jobs=tuple(jobs), after=after)


def read_states(queue: QueueSettings, *, table: Table, spread: Spread = map) -> Mapping[Key, Row]:
    """Read the states of a queue's partitions. Raises Unavailable when one of them is left unread, or Throttled."""
    reading = states_of(partitions_of(queue), table=table, spread=spread)
    if reading.unread:
        raise Unavailable(f"{len(reading.unread)} states of queue {queue.name} could not be read: try again")
    return reading.rows


def partitions_of(queue: QueueSettings) -> list[Partition]:
    return [Partition(queue=queue.name, number=number) for number in range(queue.partitions)]


def scan(span: Span, *, snapshot: Snapshot, spread: Spread = map) -> Scanned:
    """Return the first scheduled jobs of a span, as many as it asks for, as far as a bounded number of reads finds."""
    slices = _slices(span, snapshot)
    until = instant.text(instant.round_up(span.end))
    # One job and one row more than the share: they tell whether there is more.
    share = min(span.limit, 2 * -(-span.limit // len(slices))) + 2
    for round in range(_ROUNDS):
        behind = _behind(slices, span.limit, until)
        if not behind:
            break
        list(spread(partial(_Slice.read_on, snapshot=snapshot, until=until, limit=share * 4**round), behind))
    reached = min(slice.reached for slice in slices)
    found = [row for row in _in_order(slices) if _sort_key(row) <= reached]
    if len(found) > span.limit:
        return Scanned(rows=tuple(found[: span.limit]), after=_sort_key(found[span.limit - 1]))
    return Scanned(rows=tuple(found), after=reached if reached < until else None)


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
    """What is read of one partition: the rows of all jobs that are scheduled up to the sort key `reached`.

    `begun` are the rows of the job behind it, of which there may be more on the next page.
    """

    partition: Partition
    reached: str
    rows: list[Row] = field(default_factory=list)
    begun: list[Row] = field(default_factory=list)

    def read_on(self, *, snapshot: Snapshot, until: str, limit: int) -> None:
        after = str(self.begun[-1]["sk"]) if self.begun else self.reached
        page = snapshot.table.page(self.partition, after=after, until=until, limit=limit)
        of_jobs = [list(group) for _, group in groupby([*self.begun, *page.rows], key=_prefix)]
        self.begun = of_jobs.pop() if page.more and of_jobs else []
        self.rows += filter(None, map(snapshot.scheduled, of_jobs))
        if not page.more:
            self.reached = until
        elif of_jobs:
            self.reached = str(of_jobs[-1][-1]["sk"])


def _job_among(found: Mapping[Key, Row]) -> tuple[Row | None, Job | None]:
    """Return which of these rows holds a job, and that job unless it cannot be read."""
    row = next((row for (_, sk), row in found.items() if rows.prefix_and_kind(sk)[1] == rows.JOB), None)
    try:
        return row, None if row is None else rows.read_job(row)
    except InvalidJob:
        return row, None


def _slices(span: Span, snapshot: Snapshot) -> list[_Slice]:
    start = max(instant.text(instant.round_up(span.start)), span.after)
    return [
        _Slice(partition=partition, reached=max(start, snapshot.cursor(partition)))
        for partition in snapshot.partitions or partitions_of(snapshot.queue)
    ]


def _behind(slices: Sequence[_Slice], limit: int, until: str) -> list[_Slice]:
    """Return the slices that may yet hold one of the first `limit` jobs, or tell that there is one more."""
    found = _in_order(slices)
    needed = _sort_key(found[limit]) if len(found) > limit else until
    return [slice for slice in slices if slice.reached < needed]


def _in_order(slices: Sequence[_Slice]) -> list[Row]:
    return sorted((row for slice in slices for row in slice.rows), key=_sort_key)


def _sort_key(row: Row) -> str:
    return rows.key(row)[1]


def _prefix(row: Row) -> str:
    return rows.prefix_and_kind(str(row["sk"]))[0]


def _fitting(found: Iterable[Row]) -> list[Job]:
    """Read as many jobs as fit into a page with their payloads, at least one."""
    left, jobs = MOST_BYTES, list[Job]()
    for job in map(rows.read_job, found):
        left -= job.size
        if jobs and left < 0:
            break
        jobs.append(job)
    return jobs
