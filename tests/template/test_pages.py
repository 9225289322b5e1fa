"""What the pages for platform teams say is so in the templates."""

import json
import re
from typing import Any

import pytest

from tests.template.iam import allows, policy
from tests.template.synthesis import ROOT, Assembly, Template

COUNTED = {
    "SQS queues": "AWS::SQS::Queue",
    "DynamoDB tables": "AWS::DynamoDB::Table",
    "Lambda functions": "AWS::Lambda::Function",
    "Scheduler schedules": "AWS::Scheduler::Schedule",
    "CloudWatch alarms": "AWS::CloudWatch::Alarm",
    "IAM roles": "AWS::IAM::Role",
    "IAM managed policies": "AWS::IAM::ManagedPolicy",
    "SSM parameters": "AWS::SSM::Parameter",
    "log groups": "AWS::Logs::LogGroup",
}
SHOP = "arn:aws:iam::222222222222:role/shop"
NAMES = ("QueueName", "TableName", "BucketName", "Name")
ORGANIZATION = {"aws:PrincipalOrgID": ["o-exampleorgid"]}


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def test_quotas_page_counts_what_is_deployed(three: Assembly) -> None:
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| ?(\d*) ?\|", _page("quotas.md"), re.MULTILINE)
    documented = {what: (int(core), int(queue), int(partition or 0)) for what, core, queue, partition in rows}
    queue = three.queues["queue-0"]
    partitions = three.deployment.queues["queue-0"].partitions
    schedules = "Scheduler schedules"
    assert {what: each for what, each in documented.items() if what in COUNTED} == {
        what: (
            len(three.core.of_type(type)),
            len(queue.of_type(type)) - (partitions if what == schedules else 0),
            int(what == schedules),
        )
        for what, type in COUNTED.items()
    }
    assert documented["CloudFormation stacks"] == (1, 1, 0)


@pytest.mark.parametrize(("page", "stack"), [(0, "queue"), (1, "core")])
def test_import_map_has_all_that_is_retained(one_more: Assembly, page: int, stack: str) -> None:
    """But for ticks' schedules, which CloudFormation cannot import, and the deployment makes again."""
    mapping = json.loads(re.findall(r"```json\n(.*?)```", _page("removing.md"), re.DOTALL)[page])
    template = one_more.core if stack == "core" else one_more.queues["ahead"]
    kept = {id: each for id, each in template.resources.items() if "Retain" in each.get("DeletionPolicy", "")}
    imported = {id: each for id, each in kept.items() if each["Type"] != "AWS::Scheduler::Schedule"}
    assert mapping.keys() == imported.keys()
    names = {"name": "dueline", "queue": "ahead", "account": "<AWS::AccountId>", "region": "<AWS::Region>"}
    for id, identifier in mapping.items():
        [named] = identifier.values()
        name = next(value for key, value in imported[id]["Properties"].items() if key in NAMES)
        assert named.format(**names).rpartition("/")[2] == template.spelled(name)


@pytest.fixture
def trust() -> dict[str, Any]:
    [document] = re.findall(r"```json\n(.*?)```", _page("accounts.md"), re.DOTALL)
    return dict(json.loads(document))


def _may_assume(trust: dict[str, Any], who: str, context: dict[str, list[str]]) -> bool:
    """Say whether a role's trust policy lets somebody in; its principal stands where a policy has its resource."""
    statements = [
        {"Effect": each["Effect"], "Action": each["Action"], "Resource": each["Principal"]["AWS"]}
        | {"Condition": each["Condition"]}
        for each in trust["Statement"]
    ]
    return allows(statements, "sts:AssumeRole", who, context)


def test_documented_trust_admits_one_role(trust: dict[str, Any]) -> None:
    assert _may_assume(trust, SHOP, ORGANIZATION)
    assert not _may_assume(trust, SHOP, {})
    assert not _may_assume(trust, SHOP, {"aws:PrincipalOrgID": ["o-another"]})
    assert not _may_assume(trust, "arn:aws:iam::222222222222:role/other", ORGANIZATION)
    assert not _may_assume(trust, "arn:aws:iam::222222222222:root", ORGANIZATION)


def test_cross_account_access_stays_in_account(neighbours: Assembly) -> None:
    template = neighbours.queues["emails"]
    named = set(re.findall(r"dueline_emails_(\w+)", _page("accounts.md")))
    assert named == {"producer", "consumer"}
    for kind in named:
        for statement in policy(template, f"dueline_emails_{kind}"):
            assert all(_is_of_the_deployments_account(resource) for resource in statement["Resource"])
    producer = policy(template, "dueline_emails_producer")
    [api] = [id for id in template.content["Parameters"] if id == "HttpApiId"]
    request = f"execute-api:<{api}>/$default/POST/queues/{{}}/jobs"
    assert allows(producer, "execute-api:Invoke", request.format("emails"))
    assert not allows(producer, "execute-api:Invoke", request.format("emails-vip"))
    _nothing_is_opened_to_other_accounts(neighbours)


def _is_of_the_deployments_account(resource: str) -> bool:
    """Say so of an ARN as `spelled` shortens it: partition, region and account were the stack's own, or S3's."""
    return not resource.startswith("arn:")


def _nothing_is_opened_to_other_accounts(assembly: Assembly) -> None:
    for template in assembly.templates.values():
        for statement in _resource_statements(template):
            if statement["Effect"] == "Allow":
                assert set(statement["Principal"]) == {"Service"}, statement


def _resource_statements(template: Template) -> list[dict[str, Any]]:
    kinds = ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy", "AWS::SNS::TopicPolicy")
    return [
        each for kind in kinds for one in template.of_type(kind).values() for each in one["PolicyDocument"]["Statement"]
    ]
