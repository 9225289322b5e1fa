"""What platform teams require of all that is deployed: their key, their boundary, their tags."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.template.conftest import NEIGHBOURS
from tests.template.iam import allows, as_list, policy, statements
from tests.template.linting import lint
from tests.template.synthesis import ROOT, Assembly, Template, synthesize
from tests.template.test_policies import policies_fit

KEY = "arn:aws:kms:eu-central-1:123456789012:key/0d8e4f6a-1111-2222-3333-444455556666"
BOUNDARY = "arn:aws:iam::123456789012:policy/team/boundary"
TAGS = {"team": "platform", "cost-center": "4711", "env": "prod eu"}
# Where the key of each kind of resource that stores something is named, by CloudFormation.
NAMED_AT = {
    "AWS::SQS::Queue": ("KmsMasterKeyId",),
    "AWS::DynamoDB::Table": ("SSESpecification", "KMSMasterKeyId"),
    "AWS::Logs::LogGroup": ("KmsKeyId",),
    "AWS::SNS::Topic": ("KmsMasterKeyId",),
    "AWS::S3::Bucket": (
        *("BucketEncryption", "ServerSideEncryptionConfiguration", 0),
        *("ServerSideEncryptionByDefault", "KMSMasterKeyID"),
    ),
}
TAGGED = {
    *NAMED_AT,
    *(f"AWS::{type}" for type in ("Lambda::Function", "IAM::Role", "CloudWatch::Alarm", "ApiGatewayV2::Api")),
    *(f"AWS::{type}" for type in ("SSM::Parameter", "Scheduler::ScheduleGroup", "Events::Rule")),
}


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """Queues, with all that a platform team may require."""
    queues = {"emails": NEIGHBOURS["emails"], "emails" * 10: {**NEIGHBOURS["emails" * 10]}}
    options = {
        "kms_key_arn": KEY,
        "kms_data_key_reuse": 3600,
        "permission_boundary": BOUNDARY,
        "tags": TAGS,
        "log_retention_days": 3653,
        "termination_protection": True,
    }
    return synthesize({"queues": queues, **options}, tmp_path_factory.mktemp("strict"))


def _all(assembly: Assembly) -> Iterator[tuple[Template, str, dict[str, Any]]]:
    for template in assembly.templates.values():
        for resource in template.resources.values():
            yield template, resource["Type"], resource.get("Properties", {})


def _at(properties: Any, path: tuple[str | int, ...]) -> Any:
    for name in path:
        properties = properties[name]
    return properties


def test_stored_data_has_the_configured_key(strict: Assembly) -> None:
    assert {type for _, type, _ in _all(strict)} >= set(NAMED_AT)
    for _, type, properties in _all(strict):
        if type in NAMED_AT:
            assert _at(properties, NAMED_AT[type]) == KEY, (type, properties)
        if type == "AWS::SQS::Queue":
            assert properties["KmsDataKeyReusePeriodSeconds"] == 3600
        if type == "AWS::S3::Bucket":
            [rule] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            assert rule["BucketKeyEnabled"] is True


def _via(service: str) -> dict[str, list[str]]:
    return {"kms:ViaService": [f"{service}.<AWS::Region>.<AWS::URLSuffix>"]}


def _roles(assembly: Assembly) -> Iterator[list[dict[str, Any]]]:
    for template, type, properties in _all(assembly):
        if type == "AWS::IAM::Role" and "Policies" in properties:
            yield [each for inline in properties["Policies"] for each in statements(template, inline["PolicyDocument"])]
        if type == "AWS::IAM::Policy":
            yield statements(template, properties["PolicyDocument"])


# What a service requests of KMS on behalf of who calls it, by what they may do there.
NEEDS = {
    "sqs:SendMessage": ("sqs", ("kms:GenerateDataKey", "kms:Decrypt")),
    "sns:Publish": ("sns", ("kms:GenerateDataKey", "kms:Decrypt")),
    "sqs:ReceiveMessage": ("sqs", ("kms:Decrypt",)),
    "s3:PutObject": ("s3", ("kms:GenerateDataKey", "kms:Decrypt")),
    "s3:GetObject": ("s3", ("kms:Decrypt",)),
    "dynamodb:BatchGetItem": ("dynamodb", ("kms:Decrypt",)),
    "dynamodb:PutItem": ("dynamodb", ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")),
}


def test_key_is_used_through_services_only(strict: Assembly) -> None:
    names = [f"dueline_emails_{kind}" for kind in ("producer", "consumer", "operator", "direct")]
    managed = [policy(strict.queues["emails"], name) for name in names]
    for granted in [*_roles(strict), *managed]:
        held = {action for statement in granted for action in as_list(statement["Action"])}
        services = {NEEDS[action][0] for action in held & NEEDS.keys()}
        for service, actions in (NEEDS[action] for action in held & NEEDS.keys()):
            assert all(allows(granted, action, KEY, _via(service)) for action in actions), (service, held)
        for service in {"sqs", "s3", "sns", "dynamodb", "secretsmanager"} - services:
            assert not allows(granted, "kms:Decrypt", KEY, _via(service)), (service, held)
        assert not allows(granted, "kms:Decrypt", KEY)
        assert not held & {"kms:CreateGrant", "kms:PutKeyPolicy", "kms:ScheduleKeyDeletion", "kms:*"}


def test_documented_key_policy_is_sufficient(strict: Assembly) -> None:
    shown = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "security.md").read_text(), re.DOTALL)
    [document] = [policy_document for text in shown if "kms:*" in json.dumps(policy_document := json.loads(text))]
    _, logs, alarms = document["Statement"]
    pattern = logs["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"].rpartition("log-group:")[2]
    groups = [properties["LogGroupName"] for _, type, properties in _all(strict) if type == "AWS::Logs::LogGroup"]
    assert [group for group in groups if not fnmatchcase(group, pattern)] == []
    assert logs["Principal"]["Service"].startswith("logs.")
    assert (alarms["Principal"]["Service"], alarms["Action"]) == (
        "cloudwatch.amazonaws.com",
        ["kms:Decrypt", "kms:GenerateDataKey*"],
    )


def test_roles_have_the_permission_boundary(strict: Assembly, three: Assembly) -> None:
    bounded, plain = (
        [properties.get("PermissionsBoundary") for _, type, properties in _all(each) if type == "AWS::IAM::Role"]
        for each in (strict, three)
    )
    assert set(bounded) == {BOUNDARY}
    assert set(plain) == {None}


def test_resources_and_stacks_are_tagged(strict: Assembly) -> None:
    for _, type, properties in _all(strict):
        if type not in TAGGED:
            continue
        tags = properties["Tags"]
        actual = tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}
        assert actual.items() >= TAGS.items(), (type, tags)
    manifest = json.loads((strict.directory / "manifest.json").read_text())["artifacts"]
    assert {name: manifest[name]["properties"]["tags"] for name in strict.templates} == dict.fromkeys(
        strict.templates, TAGS
    )


def test_protection_and_retention_are_settings(strict: Assembly, three: Assembly) -> None:
    for assembly, is_protected in ((strict, True), (three, False)):
        manifest = json.loads((assembly.directory / "manifest.json").read_text())["artifacts"]
        protected = {bool(manifest[name]["properties"].get("terminationProtection")) for name in assembly.templates}
        assert protected == {is_protected}
    kept = [properties["RetentionInDays"] for _, type, properties in _all(strict) if type == "AWS::Logs::LogGroup"]
    assert set(kept) == {3653}


def test_all_settings_pass_nag(strict: Assembly) -> None:
    assert all(map(policies_fit, strict.templates.values()))
    report = json.loads((strict.directory / "validation-report.json").read_text())
    assert report["pluginReports"] == []


@pytest.mark.thorough
def test_all_settings_pass_cfn_lint(strict: Assembly) -> None:
    for template in (strict.core, strict.queues["emails"]):
        assert lint(template) == []
