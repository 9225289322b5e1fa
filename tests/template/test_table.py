"""The tables are hard to lose and not left behind."""

from typing import Any

from tests.template.synthesis import Assembly, Template

NAMES = ["dueline-jobs", "dueline-once", "dueline-state"]


def _table(template: Template, name: str) -> tuple[str, dict[str, Any]]:
    return template.find("AWS::DynamoDB::Table", name)


def test_failed_first_deployment_leaves_nothing(neighbours: Assembly) -> None:
    """Its rollback deletes what it made, but for protected tables: nothing that may fail comes after them."""
    core = neighbours.core
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
        for template in neighbours.templates.values()
        for each in template.resources.values()
        if "Retain" in each.get("DeletionPolicy", "")
    ]
    assert set(kept) == {"RetainExceptOnCreate"}


def test_imported_tables_have_no_dependencies(thrifty: Assembly) -> None:
    imported = thrifty.core
    assert not [id for id in imported.of_type("AWS::DynamoDB::Table") if "DependsOn" in imported.resources[id]]
