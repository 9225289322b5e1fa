"""DynamoDB's TTL on the table of jobs."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from dueline.aws.faults import is_refused_setting, translated
from dueline.errors import NotYet
from dueline.protocol.ttl_guard import TtlStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ATTRIBUTE = "ttl"


class DynamoTimeToLive:
    """TTL on a table. `client` is boto3's."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def status(self) -> TtlStatus:
        with translated(f"asking for the TTL of {self._table}"):
            answer = self._client.describe_time_to_live(TableName=self._table)
        return TtlStatus(answer["TimeToLiveDescription"]["TimeToLiveStatus"])

    def switch(self, *, on: bool) -> None:
        # DynamoDB refuses what is set already, and any change within an hour of the last one:
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html
        if self.status().is_on == on:
            return
        wanted = f"switching the TTL of {self._table} {'on' if on else 'off'}"
        with translated(wanted):
            try:
                self._client.update_time_to_live(
                    TableName=self._table, TimeToLiveSpecification={"AttributeName": _ATTRIBUTE, "Enabled": on}
                )
            except ClientError as error:
                if not is_refused_setting(error):
                    raise
                raise NotYet(f"{wanted}: {error}") from error
