"""A row as DynamoDB writes it is what boto3's own serializer makes of it."""

from decimal import Decimal

import pytest
from boto3.dynamodb.types import TypeSerializer

from dueline.aws.dynamodb_items import item
from dueline.core.job import State


@pytest.mark.parametrize(
    "value", ["", "ü", b"\x00", 0, -7, 10**12, True, Decimal("1795255290"), State.SUCCEEDED], ids=repr
)
def test_item_is_as_boto3_writes_it(value):
    assert item({"name": value}) == {"name": TypeSerializer().serialize(value)}


def test_item_of_no_type_is_refused():
    with pytest.raises(TypeError):
        item({"name": 0.5})
