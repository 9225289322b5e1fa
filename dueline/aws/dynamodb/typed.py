"""Values as DynamoDB writes them, each with its type.

boto3's own serializer and deserializer know every type there is, and take ten times as long for those of our rows.
"""

from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

_SERIALIZER = TypeSerializer()
_DESERIALIZER = TypeDeserializer()


def typed(value: object) -> dict[str, Any]:
    """Return a value with its type. Raises TypeError for what DynamoDB has no type for.

    >>> typed(5)
    {'N': '5'}
    """
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    return {"B": value} if isinstance(value, bytes) else dict(_SERIALIZER.serialize(value))


def untyped(item: Any) -> Any:
    """Return a typed value without its type: a number as a Decimal, and bytes as they are.

    >>> untyped({"S": "text"})
    'text'
    """
    ((type, value),) = item.items()
    if type in ("S", "BOOL", "B"):
        return value
    # boto3 would wrap bytes into a type of its own, but keeps that within lists and maps, of which no row has any.
    return Decimal(value) if type == "N" else _DESERIALIZER.deserialize(item)
