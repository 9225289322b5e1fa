"""A table as Dueline's, for engines that have none yet."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SCHEMA: Any = {
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
}
_AT_ONCE: Any = {"Delay": 0, "MaxAttempts": 1000}


def create_table(client: "DynamoDBClient", name: str) -> None:
    """Create a table, and return when it is there."""
    client.create_table(TableName=name, **SCHEMA)
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=_AT_ONCE)
