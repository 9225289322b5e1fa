"""Grants that the emulator needs and AWS does not.

AWS authorizes SendMessageBatch by `sqs:SendMessage`, and the other batches likewise (there are no actions of those
names); the emulator needs `sqs:SendMessageBatch`. It is granted for exactly those resources that the single one is.
Nor does the emulator know that `ssm:GetParametersByPath` is of a path, and `ssm:GetParameters` of names: it needs
them on all resources.
Of a role that is assumed, `aws:PrincipalArn` is the role's ARN; the emulator has that of the session in its place: what
a queue's policy says of a role is said of its sessions, too.
Nor does it know `dynamodb:LeadingKeys`, and so refuses what is allowed on some rows: it is allowed on all of them, and
tests/template sees to the condition.
It takes reading how much concurrency a function has for setting it.
"""

import json
from typing import Any

from local.emulator import ACCOUNT, Emulator

_POLICY = "what-the-emulator-needs"
_BATCHED = ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
_OF_SEVERAL = ("ssm:GetParametersByPath", "ssm:GetParameters")
_PRINCIPAL = "aws:PrincipalArn"
_LEADING_KEYS = "dynamodb:LeadingKeys"
_TAKEN_FOR = {"lambda:GetFunctionConcurrency": "lambda:PutFunctionConcurrency"}


def grant_what_the_emulator_needs(emulator: Emulator) -> None:
    iam = emulator.client("iam")
    for role in (role["RoleName"] for role in iam.list_roles()["Roles"]):
        statements = [
            statement
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
            for statement in iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]["Statement"]
        ]
        if more := _extra_statements(statements):
            document = json.dumps({"Version": "2012-10-17", "Statement": more})
            iam.put_role_policy(RoleName=role, PolicyName=_POLICY, PolicyDocument=document)
    _name_sessions(emulator.client("sqs"))


def _name_sessions(sqs: Any) -> None:
    for url in sqs.list_queues()["QueueUrls"]:
        policy = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"].get("Policy", "")
        if _PRINCIPAL in policy:
            document = json.loads(policy)
            for statement in document["Statement"]:
                if roles := statement["Condition"].pop("ArnNotEquals", {}).get(_PRINCIPAL):
                    sessions = [
                        f"{role.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/*" for role in roles
                    ]
                    statement["Condition"]["ArnNotLike"] = {_PRINCIPAL: [*roles, *sessions]}
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(document)})


def as_the_emulator_takes_it(document: dict[str, Any]) -> dict[str, Any]:
    """Return a policy that allows and denies in the emulator what `document` does on AWS."""
    statements = document["Statement"]
    allowing = [statement for statement in statements if statement["Effect"] == "Allow"]
    replaced = [
        {**statement, "Action": other}
        for statement in statements
        for action, other in _TAKEN_FOR.items()
        if action in _as_list(statement["Action"])
    ]
    return {**document, "Statement": [*statements, *_extra_statements(allowing), *replaced]}


def document_of(iam: Any, policy: str) -> dict[str, Any]:
    """Return what a managed policy allows."""
    arn = f"arn:aws:iam::{ACCOUNT}:policy/{policy}"
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    document: Any = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    return json.loads(document) if isinstance(document, str) else dict(document)


def key_of(emulator: Emulator, user: str, *policies: str) -> tuple[str, str]:
    """Make a user with managed policies and nothing else; return the id and the secret of their access key."""
    iam = emulator.client("iam")
    iam.create_user(UserName=user)
    for name in policies:
        document = as_the_emulator_takes_it(document_of(iam, name))
        iam.put_user_policy(UserName=user, PolicyName=name, PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName=user)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def _extra_statements(statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    batches = [
        {"Effect": "Allow", "Action": f"{action}Batch", "Resource": statement["Resource"]}
        for statement in statements
        for action in _BATCHED
        if action in _as_list(statement["Action"])
    ]
    on_rows = [
        {"Effect": "Allow", "Action": statement["Action"], "Resource": statement["Resource"]}
        for statement in statements
        if any(_LEADING_KEYS in keys for keys in statement.get("Condition", {}).values())
    ]
    of_several = [
        {"Effect": "Allow", "Action": action, "Resource": "*"}
        for action in _OF_SEVERAL
        if any(action in _as_list(statement["Action"]) for statement in statements)
    ]
    return batches + on_rows + of_several


def _as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
