"""Dynein's protocol, as its public code has it, over Dueline's ports: https://github.com/airbnb/dynein

One row a job, which is put, acquired, and deleted once it is sent: three writes. Everything goes singly, as in
AsyncSqsClientImpl.java, PartitionWorker.java and DynamoDBScheduleManager.java there; `batched` does by ten or 25 what
the protocol allows to be batched, which is all but the conditional write that acquires a job. Left out: its logs, its
metrics, and the recovery of jobs whose worker died between two of the three writes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any, Protocol, TypeVar

from dueline.model import instant, rows
from dueline.model.job import Job, Partition
from dueline.model.message import BATCH_MESSAGES, Message
from dueline.model.rows import Key, Row
from dueline.ports import WRITE_ROWS, Arrival, Clock, Inbox, Queue, Refusal, Spread, Table

SCHEDULED, ACQUIRED = "SCHEDULED", "ACQUIRED"
# How long a partition that had no more overdue jobs is left alone (PartitionWorker.scanGroup).
POLL = timedelta(seconds=1)

A = TypeVar("A")


class Claims(Protocol):
    """What Dynein asks of its table besides the port."""

    def change_status(self, key: Key, *, old: str, new: str) -> bool:
        """Change a row's status on condition that it is `old`; tell whether it was."""

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete one acquired row on condition that it is, or up to 25 on none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dynein:
    """Submits, takes in and hands over; `spread` is for what its futures do at once, `query_limit` a page's rows."""

    table: Table
    claims: Claims
    inbound: Queue
    inbox: Inbox
    queue: Queue
    clock: Clock
    spread: Spread = map
    batched: bool = False
    query_limit: int = 100

    def submit(self, jobs: Sequence[Job]) -> None:
        """Send jobs to the inbound queue."""
        for batch in cut(jobs, BATCH_MESSAGES if self.batched else 1):
            _sent(self.inbound.send([Message.of(job) for job in batch]))

    def ingest(self, *, wait: int = 0) -> int:
        """Receive what the inbound queue gives at once, put its rows, delete its messages; return how many."""
        arrivals = self.inbox.receive(most=BATCH_MESSAGES if self.batched else 1, wait=wait)
        if arrivals:
            self.store([_row(arrival) for arrival in arrivals])
            self.inbox.delete([arrival.receipt for arrival in arrivals])
        return len(arrivals)

    def store(self, written: Sequence[Row]) -> None:
        """Put the rows of jobs."""
        for batch in cut(written, WRITE_ROWS if self.batched else 1):
            if self.table.write(batch):
                raise RuntimeError("rows were left unwritten")

    def poll(self, partition: Partition) -> tuple[int, bool]:
        """Hand over one page of overdue jobs; return how many, and whether to poll again at once."""
        until = rows.end_of(instant.text(self.clock.now()))
        page = self.table.page(partition, after=rows.FIRST, until=until, consistent=False, limit=self.query_limit)
        overdue = [row for row in page.rows if row["status"] == SCHEDULED]
        done = self._hand_over_batched(overdue) if self.batched else sum(self.spread(self._hand_over, overdue))
        return done, page.more

    def _hand_over(self, row: Row) -> int:
        if not self._acquire(row):
            return 0
        _sent(self.queue.send([_message(row)]))
        self.claims.delete([rows.key(row)])
        return 1

    def _hand_over_batched(self, overdue: Sequence[Row]) -> int:
        acquired = [row for row, is_ours in zip(overdue, self.spread(self._acquire, overdue), strict=True) if is_ours]
        for refusals in self.spread(lambda batch: self.queue.send(list(map(_message, batch))), _tens(acquired)):
            _sent(refusals)
        for batch in cut(acquired, WRITE_ROWS):
            self.claims.delete([rows.key(row) for row in batch])
        return len(acquired)

    def _acquire(self, row: Row) -> bool:
        return self.claims.change_status(rows.key(row), old=SCHEDULED, new=ACQUIRED)


def job_row(job: Job) -> Row:
    """Return the row of a job that is scheduled."""
    return {**rows.job_row(job), "status": SCHEDULED}


def cut(items: Sequence[A], size: int) -> Iterator[list[A]]:
    """Yield the items in order, so many at a time.

    >>> list(cut(range(5), 2))
    [[0, 1], [2, 3], [4]]
    """
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def _tens(items: Sequence[A]) -> Iterator[list[A]]:
    return cut(items, BATCH_MESSAGES)


def _row(arrival: Arrival) -> Row:
    return job_row(arrival.message.job())


def _message(row: Row) -> Message:
    unmarked: dict[str, Any] = {name: value for name, value in row.items() if name != "status"}
    return Message.of(rows.read_job(unmarked))


def _sent(refusals: Sequence[Refusal]) -> None:
    if refusals:
        raise RuntimeError(f"not sent: {refusals[0].reason}")
