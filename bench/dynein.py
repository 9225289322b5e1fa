"""Dynein's protocol, as its public code has it, over Dueline's ports: https://github.com/airbnb/dynein

One row a job, which is put, acquired, and deleted once it is sent: three writes. Everything goes singly, as in
AsyncSqsClientImpl.java, PartitionWorker.java and DynamoDBScheduleManager.java there; `batched` does by ten or 25 what
the protocol allows to be batched, which is all but the conditional write that acquires a job. Left out: its logs, its
metrics, and the recovery of jobs whose worker died between two of the three writes.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from bench.harness import chunks
from dueline.aws import clients
from dueline.aws.botocore_errors import is_failed_condition
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.sqs import SqsQueue
from dueline.core import instant, rows
from dueline.core.clock import SystemClock
from dueline.core.job import Partition, StoredJob
from dueline.core.message import BATCH_MESSAGES, Message
from dueline.core.ports import WRITE_ROWS, BatchFailure, Clock, ParallelMap, Queue, Table
from dueline.core.rows import Key, Row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

SCHEDULED, ACQUIRED = "SCHEDULED", "ACQUIRED"
# How long a partition that had no more overdue jobs is left alone (PartitionWorker.scanGroup).
POLL = timedelta(seconds=1)
_PAGE_ROWS = 100


class DynamoClaims:
    """What Dynein does to its table besides the port: it changes and deletes rows that have a `status`."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client, self._name = client, name

    def acquire(self, row: Row) -> bool:
        """Acquire a row, on condition that it is scheduled; return whether it was."""
        try:
            self._client.update_item(
                TableName=self._name,
                Key=_key(rows.key(row)),
                UpdateExpression="SET #status = :new",
                ConditionExpression="#status = :old",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={":old": {"S": SCHEDULED}, ":new": {"S": ACQUIRED}},
                ReturnValues="UPDATED_NEW",
            )
        except ClientError as error:
            if is_failed_condition(error):
                return False
            raise
        return True

    def delete(self, deleted: Sequence[Row]) -> None:
        """Delete one row on condition that it is acquired, or up to 25 on none."""
        keys = [_key(rows.key(row)) for row in deleted]
        if len(keys) > 1:
            requests: Any = [{"DeleteRequest": {"Key": key}} for key in keys]
            if self._client.batch_write_item(RequestItems={self._name: requests})["UnprocessedItems"]:
                raise RuntimeError("rows were left undeleted")
            return
        self._client.delete_item(
            TableName=self._name,
            Key=keys[0],
            ConditionExpression="#status = :acquired",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":acquired": {"S": ACQUIRED}},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Dynein:
    """Submits, ingests and polls; `spread` is for what its futures do at once, `inbound` a queue from both sides."""

    table: Table
    claims: DynamoClaims
    inbound: Any
    queue: Queue
    clock: Clock
    spread: ParallelMap = map
    batched: bool = False

    def submit(self, jobs: Sequence[StoredJob]) -> None:
        for batch in chunks(jobs, BATCH_MESSAGES if self.batched else 1):
            _check(self.inbound.send([Message.of(job) for job in batch]))

    def ingest(self) -> int:
        """Receive what the inbound queue gives at once, put its rows, delete its messages; return how many."""
        arrivals = self.inbound.receive(most=BATCH_MESSAGES if self.batched else 1, wait=0)
        if arrivals:
            self.store([job_row(arrival.message.job()) for arrival in arrivals])
            self.inbound.delete([arrival.receipt for arrival in arrivals])
        return len(arrivals)

    def store(self, written: Sequence[Row]) -> None:
        for batch in chunks(written, WRITE_ROWS if self.batched else 1):
            if self.table.write(batch):
                raise RuntimeError("rows were left unwritten")

    def poll(self, partition: Partition) -> tuple[int, bool]:
        """Send one page of overdue jobs; return how many, and whether to poll again at once."""
        until = rows.end_of(instant.text(self.clock.now()))
        page = self.table.page(partition, after=rows.FIRST, until=until, consistent=False, limit=_PAGE_ROWS)
        overdue = [row for row in page.rows if row["status"] == SCHEDULED]
        return (self._send_batched(overdue) if self.batched else sum(self.spread(self._send, overdue))), page.more

    def _send(self, row: Row) -> int:
        if not self.claims.acquire(row):
            return 0
        _check(self.queue.send([_message(row)]))
        self.claims.delete([row])
        return 1

    def _send_batched(self, overdue: Sequence[Row]) -> int:
        acquired = [row for row, ours in zip(overdue, self.spread(self.claims.acquire, overdue), strict=True) if ours]
        batches = chunks(acquired, BATCH_MESSAGES)
        for refusals in self.spread(lambda batch: self.queue.send(list(map(_message, batch))), batches):
            _check(refusals)
        for batch in chunks(acquired, WRITE_ROWS):
            self.claims.delete(batch)
        return len(acquired)


def dynein_on_aws(
    dynamodb: "DynamoDBClient", sqs: "SQSClient", *, table: str, inbound: str, queue: str, batched: bool = False
) -> Dynein:
    """Return Dynein over a table, and over queues by their URLs; what it does at once, it does in lanes as ours do."""
    return Dynein(
        table=DynamoTable(dynamodb, table, state=table),
        claims=DynamoClaims(dynamodb, table),
        inbound=SqsQueue(sqs, inbound),
        queue=SqsQueue(sqs, queue),
        clock=SystemClock(),
        spread=ThreadPoolExecutor(clients.LANES).map,
        batched=batched,
    )


def job_row(job: StoredJob) -> Row:
    """Return the row of a job that is scheduled."""
    return {**rows.job_row(job), "status": SCHEDULED}


def _message(row: Row) -> Message:
    unmarked: dict[str, Any] = {name: value for name, value in row.items() if name != "status"}
    return Message.of(rows.read_job(unmarked))


def _key(key: Key) -> Any:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def _check(refusals: Sequence[BatchFailure]) -> None:
    if refusals:
        raise RuntimeError(f"not sent: {refusals[0].reason}")
