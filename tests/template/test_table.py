"""The table is hard to lose and not left behind."""

from typing import Any

import pytest

from tests.template.synthesis import Assembly


@pytest.fixture
def table(sixty: Assembly) -> dict[str, Any]:
    [table] = [one for one in sixty.core.resources.values() if one["Type"] == "AWS::DynamoDB::Table"]
    return table


def test_its_keys_are_a_partition_and_a_sort_key_both_strings(table: dict[str, Any]) -> None:
    assert table["Properties"]["TableName"] == "dueline-jobs"
    assert table["Properties"]["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert {key["AttributeType"] for key in table["Properties"]["AttributeDefinitions"]} == {"S"}


def test_it_is_paid_on_demand_and_collects_its_own_garbage(table: dict[str, Any]) -> None:
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["Properties"]["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}


def test_it_is_protected_from_deletion_and_restored_to_any_second(table: dict[str, Any]) -> None:
    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["DeletionPolicy"] == "RetainExceptOnCreate"
    assert table["UpdateReplacePolicy"] == "Retain"


def test_all_else_is_made_first_so_that_no_failed_first_deploy_leaves_it_behind(sixty: Assembly) -> None:
    [id] = sixty.core.of_type("AWS::DynamoDB::Table")
    assert sixty.core.depends_on(id) == set(sixty.core.resources) - {id}
