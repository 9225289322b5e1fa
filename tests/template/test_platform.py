"""What platform teams require of all that is deployed: their key, their boundary, their tags."""

import json
from fnmatch import fnmatchcase

from tests.e2e.newcomer import code_of
from tests.template.conftest import KEY, STRICT
from tests.template.iam import allows, as_list, policy, statements

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


def _all(assembly):
    for template in assembly.templates.values():
        for resource in template.resources.values():
            yield template, resource["Type"], resource.get("Properties", {})


def _at(properties, path):
    for name in path:
        properties = properties[name]
    return properties


def test_stored_data_has_the_configured_key(strict):
    assert {type for _, type, _ in _all(strict)} >= set(NAMED_AT)
    for _, type, properties in _all(strict):
        if type in NAMED_AT:
            assert _at(properties, NAMED_AT[type]) == KEY, (type, properties)
        if type == "AWS::S3::Bucket":
            [rule] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            assert rule["BucketKeyEnabled"] is True


def _via(service):
    return {"kms:ViaService": [f"{service}.<AWS::Region>.<AWS::URLSuffix>"]}


def _roles(assembly):
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


def test_key_is_used_through_services_only(strict):
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


def test_documented_key_policy_is_sufficient(strict):
    [document] = [json.loads(text) for text in code_of("docs/security.md", "json") if "kms:*" in text]
    _, logs, alarms = document["Statement"]
    pattern = logs["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"].rpartition("log-group:")[2]
    groups = [properties["LogGroupName"] for _, type, properties in _all(strict) if type == "AWS::Logs::LogGroup"]
    assert [group for group in groups if not fnmatchcase(group, pattern)] == []
    assert logs["Principal"]["Service"].startswith("logs.")
    assert (alarms["Principal"]["Service"], alarms["Action"]) == (
        "cloudwatch.amazonaws.com",
        ["kms:Decrypt", "kms:GenerateDataKey*"],
    )


def test_stacks_are_tagged_and_protected(strict):
    manifest = json.loads((strict.directory / "manifest.json").read_text())["artifacts"]
    for stack in (manifest[name]["properties"] for name in strict.templates):
        assert (stack["tags"], stack["terminationProtection"]) == (STRICT["tags"], True)
