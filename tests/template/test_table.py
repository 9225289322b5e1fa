"""The tables are hard to lose and not left behind."""

import json
from typing import Any

import pytest

from tests.template.synthesis import Assembly, Template

NAMES = ["dueline-jobs", "dueline-once", "dueline-state"]
ALL = pytest.mark.parametrize("name", NAMES)


def _table(template: Template, name: str) -> tuple[str, dict[str, Any]]:
    """Return a table's logical id and its resource."""
    tables = template.of_type("AWS::DynamoDB::Table")
    [id] = [id for id, properties in tables.items() if properties["TableName"] == name]
    return id, template.resources[id]


def test_there_are_three_tables(three: Assembly) -> None:
    tables = three.core.of_type("AWS::DynamoDB::Table").values()
    assert sorted(each["TableName"] for each in tables) == NAMES


@pytest.mark.parametrize("name", ["dueline-jobs", "dueline-state"])
def test_the_keys_of_jobs_and_of_state_are_a_partition_and_a_sort_key_both_strings(three: Assembly, name: str) -> None:
    _, table = _table(three.core, name)
    assert table["Properties"]["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert {key["AttributeType"] for key in table["Properties"]["AttributeDefinitions"]} == {"S"}


def test_the_notes_have_the_key_that_powertools_gives_them(three: Assembly) -> None:
    _, table = _table(three.core, "dueline-once")
    assert table["Properties"]["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
    assert table["Properties"]["AttributeDefinitions"] == [{"AttributeName": "id", "AttributeType": "S"}]


@pytest.mark.parametrize(("name", "ttl"), [*zip(NAMES, ("ttl", "expiration", "ttl"), strict=True)])
def test_they_are_paid_on_demand_and_collect_their_own_garbage(three: Assembly, name: str, ttl: str) -> None:
    _, table = _table(three.core, name)
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["Properties"]["TimeToLiveSpecification"] == {"AttributeName": ttl, "Enabled": True}


def test_the_jobs_table_alone_is_provisioned_within_bounds_that_follow_the_load(thrifty: Assembly) -> None:
    id, table = _table(thrifty.core, "dueline-jobs")
    assert table["Properties"]["ProvisionedThroughput"] == {"ReadCapacityUnits": 50, "WriteCapacityUnits": 50}
    assert "BillingMode" not in table["Properties"]
    targets = thrifty.core.of_type("AWS::ApplicationAutoScaling::ScalableTarget")
    assert {each["ScalableDimension"]: (each["MinCapacity"], each["MaxCapacity"]) for each in targets.values()} == {
        "dynamodb:table:ReadCapacityUnits": (50, 2000),
        "dynamodb:table:WriteCapacityUnits": (50, 2000),
    }
    assert all(id in json.dumps(each["ResourceId"]) for each in targets.values())
    policies = thrifty.core.of_type("AWS::ApplicationAutoScaling::ScalingPolicy").values()
    followed = [each["TargetTrackingScalingPolicyConfiguration"] for each in policies]
    assert {
        each["PredefinedMetricSpecification"]["PredefinedMetricType"]: each["TargetValue"] for each in followed
    } == {
        "DynamoDBReadCapacityUtilization": 70,
        "DynamoDBWriteCapacityUtilization": 70,
    }


def test_the_jobs_table_alone_is_of_the_infrequent_class_and_gives_up_its_backup(thrifty: Assembly) -> None:
    _, table = _table(thrifty.core, "dueline-jobs")
    assert table["Properties"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": False}
    assert table["Properties"]["DeletionProtectionEnabled"] is True


def test_the_jobs_table_alone_is_warm_for_the_writes_that_queues_yaml_says(traced: Assembly, three: Assembly) -> None:
    warm = {
        each["TableName"]: each.get("WarmThroughput") for each in traced.core.of_type("AWS::DynamoDB::Table").values()
    }
    assert warm == {"quiet-jobs": {"WriteUnitsPerSecond": 20_000}, "quiet-state": None, "quiet-once": None}
    assert "WarmThroughput" not in _table(three.core, "dueline-jobs")[1]["Properties"]


def test_what_a_deployment_saves_changes_no_table_but_that_of_jobs(thrifty: Assembly, three: Assembly) -> None:
    tables, saving = (each.core.of_type("AWS::DynamoDB::Table") for each in (three, thrifty))
    assert [tables[id]["TableName"] for id in tables if tables[id] != saving[id]] == ["dueline-jobs"]
    assert tables.keys() == saving.keys()


@ALL
def test_they_are_protected_from_deletion_and_restored_to_any_second(three: Assembly, name: str) -> None:
    _, table = _table(three.core, name)
    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["DeletionPolicy"] == "RetainExceptOnCreate"
    assert table["UpdateReplacePolicy"] == "Retain"


def test_all_else_but_what_invokes_functions_is_made_first_so_that_hardly_a_failed_first_deploy_leaves_them_behind(
    three: Assembly,
) -> None:
    jobs, once, state = (_table(three.core, name)[0] for name in NAMES)
    invoking = {id for id in three.core.resources if id.startswith(("PlannerTicks", "Watches", "TtlRule"))}
    timed = ("AWS::Scheduler::Schedule", "AWS::Events::Rule")
    assert {id for id, each in three.core.resources.items() if each["Type"] in timed} < invoking
    # A group of schedules, and what lets the rule invoke, besides.
    assert len(invoking) == 6
    others = set(three.core.resources) - invoking
    assert three.core.depends_on(jobs) == others - {jobs}
    assert three.core.depends_on(state) == others - {jobs, state}
    assert three.core.depends_on(once) == others - {jobs, state, once}
