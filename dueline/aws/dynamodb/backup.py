"""A backup on DynamoDB: two tables that were restored to a point in time, beside those of the deployment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from dueline.aws.dynamodb.items import as_row, key_item
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.faults import is_missing_table, translated
from dueline.errors import DeploymentNotFound, InvalidJob
from dueline.model import instant
from dueline.model.rows import Key, key
from dueline.operate.backup import Part
from dueline.ports import Reading

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What a run that is killed may repeat, of each segment.
PART_ROWS = 200
_KEY = ("pk", "sk")


class DynamoBackup:
    """Two tables that nobody writes. `client` is boto3's.

    Its name tells when the table of jobs was made: of two backups under one name, the second is another one. Raises
    DeploymentNotFound, InvalidJob for a table of something else, Throttled or Unavailable.
    """

    def __init__(self, client: "DynamoDBClient", *, jobs: str, state: str) -> None:
        self._client = client
        made, _ = (self._checked(table)["CreationDateTime"] for table in (jobs, state))
        self.name = f"{jobs}@{instant.text(made)}"
        self._jobs, self._state = jobs, state
        # A deployment of before has its states in the table of jobs.
        self._table = DynamoTable(client, jobs, state=state)

    def jobs(self, segment: int, *, of: int, after: Key | None) -> Part:
        return self._scan(self._jobs, after, Segment=segment, TotalSegments=of)

    def states(self, *, after: Key | None) -> Part:
        return self._scan(self._state, after)

    def read(self, keys: Sequence[Key]) -> Reading:
        return self._table.read(keys)

    def count(self) -> int:
        return sum(map(self._count, (self._jobs, self._state)))

    def _count(self, table: str) -> int:
        return int(self._described(table)["ItemCount"])

    def _checked(self, table: str) -> Any:
        described = self._described(table)
        names = [each["AttributeName"] for each in described["KeySchema"]]
        if names != list(_KEY):
            raise InvalidJob(
                f"table {table} has the key {', '.join(names)}: one of jobs or states has {', '.join(_KEY)}"
            )
        return described

    def _described(self, table: str) -> Any:
        with translated(f"describing table {table}"):
            try:
                return self._client.describe_table(TableName=table)["Table"]
            except ClientError as error:
                if is_missing_table(error):
                    raise DeploymentNotFound(f"there is no table {table!r} in this account and region") from None
                raise

    def _scan(self, table: str, after: Key | None, **segment: Any) -> Part:
        begin: Any = {"ExclusiveStartKey": key_item(after)} if after else {}
        with translated(f"reading table {table}"):
            answer = self._client.scan(TableName=table, Limit=PART_ROWS, **segment, **begin)
        last = answer.get("LastEvaluatedKey")
        return Part(rows=[as_row(each) for each in answer["Items"]], after=key(as_row(last)) if last else None)
