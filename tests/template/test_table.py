"""The tables are hard to lose and not left behind."""

import json
from typing import Any

from tests.template.synthesis import Assembly, Template

NAMES = ["dueline-jobs", "dueline-once", "dueline-state"]


def _table(template: Template, name: str) -> tuple[str, dict[str, Any]]:
    return template.find("AWS::DynamoDB::Table", name)


def test_jobs_table_scales_within_bounds(thrifty: Assembly) -> None:
    id, table = _table(thrifty.core, "dueline-jobs")
    assert table["ProvisionedThroughput"] == {"ReadCapacityUnits": 50, "WriteCapacityUnits": 50}
    assert "BillingMode" not in table
    targets = thrifty.core.of_type("AWS::ApplicationAutoScaling::ScalableTarget")
    assert {each["ScalableDimension"]: (each["MinCapacity"], each["MaxCapacity"]) for each in targets.values()} == {
        "dynamodb:table:ReadCapacityUnits": (50, 2000),
        "dynamodb:table:WriteCapacityUnits": (50, 2000),
    }
    assert all(id in json.dumps(each["ResourceId"]) for each in targets.values())
    policies = thrifty.core.of_type("AWS::ApplicationAutoScaling::ScalingPolicy").values()
    assert [each["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for each in policies] == [70, 70]


def test_jobs_table_may_save_costs(thrifty: Assembly) -> None:
    _, table = _table(thrifty.core, "dueline-jobs")
    assert (table["TableClass"], table["DeletionProtectionEnabled"]) == ("STANDARD_INFREQUENT_ACCESS", True)
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": False}


def test_jobs_table_alone_is_warm_by_setting(measured: Assembly, three: Assembly) -> None:
    for assembly, warm in ((measured, {"WriteUnitsPerSecond": 20_000}), (three, None)):
        tables = [_table(assembly.core, name)[1] for name in NAMES]
        assert [each.get("WarmThroughput") for each in tables] == [warm, None, None]


def test_failed_first_deployment_leaves_nothing(three: Assembly) -> None:
    """Its rollback deletes what it made, but for protected tables: nothing that may fail comes after them."""
    core = three.core
    jobs, once, state = (_table(core, name)[0] for name in NAMES)
    later = {id: each["Type"] for id, each in core.resources.items() if jobs in core.depends_on(id)}
    assert set(later.values()) == {"AWS::DynamoDB::Table", "AWS::IAM::Policy", "AWS::Lambda::Permission"}
    assert core.depends_on(jobs) == set(core.resources) - later.keys() - {jobs}
    # That of jobs may fail by its capacity: before another is there.
    assert jobs in core.depends_on(state)
    assert {jobs, state} <= core.depends_on(once)
    rights = {id for id, type in later.items() if "Table" not in type}
    assert len(rights) == 2
    assert all({jobs, once, state} <= core.depends_on(id) for id in rights)
    protected = {
        id for id, each in core.resources.items() if each.get("Properties", {}).get("DeletionProtectionEnabled")
    }
    assert protected == {jobs, once, state}
    kept = [
        each["DeletionPolicy"]
        for template in three.templates.values()
        for each in template.resources.values()
        if "Retain" in each.get("DeletionPolicy", "")
    ]
    assert set(kept) == {"RetainExceptOnCreate"}


def test_imported_tables_have_no_dependencies(thrifty: Assembly) -> None:
    imported = thrifty.core
    assert not [id for id in imported.of_type("AWS::DynamoDB::Table") if "DependsOn" in imported.resources[id]]
