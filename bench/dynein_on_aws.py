"""Dynein on DynamoDB and SQS."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from bench.dynein import ACQUIRED, Dynein
from dueline.aws import clients
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.faults import is_refused_condition
from dueline.aws.sqs.inbox import SqsInbox
from dueline.aws.sqs.queue import SqsQueue
from dueline.clock import SystemClock
from dueline.model.rows import Key
from dueline.ports import Spread

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient


def dynein_on_aws(
    dynamodb: "DynamoDBClient",
    sqs: "SQSClient",
    *,
    table: str,
    inbound: str,
    queue: str,
    spread: Spread | None = None,
    batched: bool = False,
    query_limit: int = 100,
) -> Dynein:
    """Return Dynein over a table, and over queues by their URLs; what it does at once, it does in lanes as ours do."""
    return Dynein(
        table=DynamoTable(dynamodb, table, state=table),
        claims=DynamoClaims(dynamodb, table),
        inbound=SqsQueue(sqs, inbound),
        inbox=SqsInbox(sqs, inbound, patient=sqs),
        queue=SqsQueue(sqs, queue),
        clock=SystemClock(),
        spread=spread or ThreadPoolExecutor(clients.LANES).map,
        batched=batched,
        query_limit=query_limit,
    )


class DynamoClaims:
    """The table of that name, whose rows have a `status`."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self._name = name

    def change_status(self, key: Key, *, old: str, new: str) -> bool:
        try:
            self._client.update_item(
                TableName=self._name,
                Key=_key(key),
                UpdateExpression="SET #status = :new",
                ConditionExpression="#status = :old",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={":old": {"S": old}, ":new": {"S": new}},
                ReturnValues="UPDATED_NEW",
            )
        except ClientError as error:
            if is_refused_condition(error):
                return False
            raise
        return True

    def delete(self, keys: Sequence[Key]) -> None:
        if len(keys) == 1:
            self._delete_acquired(keys[0])
            return
        requests: Any = [{"DeleteRequest": {"Key": _key(key)}} for key in keys]
        answer = self._client.batch_write_item(RequestItems={self._name: requests})
        if answer["UnprocessedItems"]:
            raise RuntimeError("rows were left undeleted")

    def _delete_acquired(self, key: Key) -> None:
        self._client.delete_item(
            TableName=self._name,
            Key=_key(key),
            ConditionExpression="#status = :acquired",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":acquired": {"S": ACQUIRED}},
        )


def _key(key: Key) -> Any:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
