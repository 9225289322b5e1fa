"""What the TTL guard reads and switches: DynamoDB's TTL on the table of jobs, and the schedules of ticks."""

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from dueline.aws.botocore_errors import is_refused_setting, map_botocore_errors
from dueline.core.job import Partition
from dueline.errors import NotYet
from dueline.operations.ttl_guard import TtlStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ATTRIBUTE = "ttl"


class DynamoTimeToLive:
    """TTL on a table. `client` is boto3's."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def status(self) -> TtlStatus:
        with map_botocore_errors(f"reading the TTL of {self._table}"):
            answer = self._client.describe_time_to_live(TableName=self._table)
            return TtlStatus(answer["TimeToLiveDescription"]["TimeToLiveStatus"])

    def switch(self, *, on: bool) -> None:
        # DynamoDB refuses what is set already, and any change within an hour of the last one:
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html
        if self.status().is_on == on:
            return
        doing = f"switching the TTL of {self._table} {'on' if on else 'off'}"
        with map_botocore_errors(doing):
            try:
                self._client.update_time_to_live(
                    TableName=self._table, TimeToLiveSpecification={"AttributeName": _ATTRIBUTE, "Enabled": on}
                )
            except ClientError as error:
                if not is_refused_setting(error):
                    raise
                raise NotYet(f"{doing}: {error}") from error


class TickSchedules:
    """The schedules of a group of EventBridge Scheduler's. `client` is boto3's."""

    def __init__(self, client: Any, group: str) -> None:
        self._client = client
        self._group = group

    def partitions(self) -> list[Partition]:
        """Return the partitions whose schedules exist, enabled or not. Raises Throttled or Unavailable."""
        with map_botocore_errors(f"listing the schedules of {self._group}"):
            pages = list(self._client.get_paginator("list_schedules").paginate(GroupName=self._group))
            names = [schedule["Name"].rpartition(".") for page in pages for schedule in page["Schedules"]]
        return [Partition(queue=queue, number=int(number)) for queue, _, number in names if number.isdigit()]
