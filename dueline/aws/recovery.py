"""What operators recover with their own credentials: the tables of a backup, and dead letters."""

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.botocore_errors import is_missing, map_botocore_errors, map_caller_errors, unless
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.dynamodb_items import as_row, key_item
from dueline.aws.s3 import S3Payloads
from dueline.aws.sqs import SqsQueue
from dueline.core import instant
from dueline.core.job import new_uid
from dueline.core.ports import BatchRead
from dueline.core.retry import Calls, Patience, in_lanes
from dueline.core.rows import Key, key
from dueline.errors import DeploymentNotFound, InvalidJob
from dueline.operations.redrive import RedriveQueues
from dueline.operations.restore import Part, Parts, Restore

if TYPE_CHECKING:
    from boto3 import Session
    from mypy_boto3_dynamodb import DynamoDBClient

# What a run that is killed may repeat, of each segment.
PART_ROWS = 200
_KEY = ("pk", "sk")
_LONGEST_REQUEST = timedelta(seconds=15)


# A backup on DynamoDB: two tables that were restored to a point in time, beside those of the deployment.
class DynamoBackup:
    """Two tables that nobody writes. `client` is boto3's.

    Its name says when the table of jobs was created: of two backups under one name, the second is another one. Raises
    DeploymentNotFound, InvalidJob for a table of something else, Throttled or Unavailable.
    """

    def __init__(self, client: "DynamoDBClient", *, jobs: str, state: str) -> None:
        self._client = client
        made, _ = (self._checked(table)["CreationDateTime"] for table in (jobs, state))
        self.name = f"{jobs}@{instant.text(made)}"
        self._jobs, self._state = jobs, state
        self._table = DynamoTable(client, jobs, state=state)

    def jobs(self, segment: int, *, of: int, after: Key | None) -> Part:
        return self._scan(self._jobs, after, Segment=segment, TotalSegments=of)

    def states(self, *, after: Key | None) -> Part:
        return self._scan(self._state, after)

    def read(self, keys: Sequence[Key]) -> BatchRead:
        return self._table.read(keys)

    def count(self) -> int:
        return sum(self._described(table)["ItemCount"] for table in (self._jobs, self._state))

    def _checked(self, table: str) -> Any:
        described = self._described(table)
        names = [each["AttributeName"] for each in described["KeySchema"]]
        if names != list(_KEY):
            raise InvalidJob(
                f"table {table} has the key {', '.join(names)}: one of jobs or states has {', '.join(_KEY)}"
            )
        return described

    def _described(self, table: str) -> Any:
        with map_botocore_errors(f"describing table {table}"):
            described = unless(is_missing, lambda: self._client.describe_table(TableName=table))
            if described is None:
                raise DeploymentNotFound(f"there is no table {table!r} in this account and region")
            return described["Table"]

    def _scan(self, table: str, after: Key | None, **segment: Any) -> Part:
        begin: Any = {"ExclusiveStartKey": key_item(after)} if after else {}
        with map_botocore_errors(f"reading table {table}"):
            answer = self._client.scan(TableName=table, Limit=PART_ROWS, **segment, **begin)
            last = answer.get("LastEvaluatedKey")
            return Part(rows=[as_row(each) for each in answer["Items"]], after=key(as_row(last)) if last else None)


def restore(
    name: str,
    *,
    jobs: str,
    state: str,
    hand_over_from: datetime | None,
    session: "Session",
    on_progress: Callable[[int, int], None],
) -> Restore:
    """Return what lets a deployment take over two tables. Raises DeploymentNotFound, Forbidden or Unavailable."""
    with map_caller_errors(f"finding the deployment {name!r}"):
        deployed = AwsDeployment(name, longest=_LONGEST_REQUEST, session=session)
        settings = deployed.find()
        backup = DynamoBackup(deployed.clients.of("dynamodb"), jobs=jobs, state=state)
        has_tick = frozenset(deployed.ticked_partitions()).__contains__
    calls = Calls(patience=Patience(), clock=deployed.clock, jitter=random.random)

    def retrying(call: Callable[[], Any]) -> Any:
        return calls.run(map_caller_errors("restoring")(call))

    parts = Parts(
        backup,
        table=deployed.table,
        inbound=deployed.inbound,
        clock=deployed.clock,
        lookahead=timedelta(seconds=settings.lookahead),
        owner=new_uid(),
        has_tick=has_tick,
        hand_over_from=hand_over_from,
        spread=deployed.spread,
    )
    return Restore(parts, retrying=retrying, spread=in_lanes, on_progress=on_progress)


def dead_letters(name: str, queue: str | None, *, session: "Session") -> RedriveQueues:
    """Return the dead-letter queue of a queue and the SQS queues of its priorities.

    Without a queue, return the one in which the deployment parks jobs, and its inbound queue. Raises QueueNotFound or
    DeploymentNotFound, Forbidden or Unavailable.
    """
    deployed = AwsDeployment(name, longest=_LONGEST_REQUEST, session=session)
    about = f"the deployment {name!r}" if queue is None else f"queue {queue!r} of the deployment {name!r}"
    with map_caller_errors(f"finding {about}"):
        if queue is None:
            deployed.find()
            urls = [deployed.url(deployed.names.dispatch_dlq), deployed.url(deployed.names.inbound)]
        else:
            work = deployed.settings_store().work(queue)
            urls = [work.dead_letters, *work.urls]
    bucket = deployed.names.payloads(account=urls[0].split("/")[-2], region=session.region_name)
    first, *queues = (SqsQueue(deployed.clients.of("sqs"), url, map_errors=map_caller_errors) for url in urls)
    payloads = S3Payloads(partial(deployed.clients.of, "s3"), bucket)
    return RedriveQueues(dead_letters=first, queues=tuple(queues), payloads=payloads)
