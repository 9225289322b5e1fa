"""Grants that the emulator asks for and AWS does not.

AWS authorizes SendMessageBatch by `sqs:SendMessage` (there is no action of that name); the emulator asks for
`sqs:SendMessageBatch`. Each role gets it for exactly those resources for which it has `sqs:SendMessage`.
Nor does the emulator know that `ssm:GetParametersByPath` is of a path: it asks for it on all resources.
"""

import json
from typing import Any

from local.emulator import Emulator

_POLICY = "what-the-emulator-calls-send-message"


def grant_batches_where_messages_are_granted(emulator: Emulator) -> None:
    iam = emulator.client("iam")
    for role in (role["RoleName"] for role in iam.list_roles()["Roles"]):
        resources = [
            resource
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
            for resource in _may_send_to(iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])
        ]
        if resources:
            iam.put_role_policy(RoleName=role, PolicyName=_POLICY, PolicyDocument=json.dumps(_batches_to(resources)))


def as_the_emulator_takes_it(document: dict[str, Any]) -> dict[str, Any]:
    """Return a policy that allows in the emulator what `document` allows on AWS."""
    by_path = {"Effect": "Allow", "Action": "ssm:GetParametersByPath", "Resource": "*"}
    batches = _batches_to(_may_send_to(document))["Statement"]
    is_granted = any(by_path["Action"] in _listed(statement["Action"]) for statement in document["Statement"])
    return {**document, "Statement": [*document["Statement"], *batches, *([by_path] if is_granted else [])]}


def _batches_to(resources: list[str]) -> dict[str, Any]:
    grant = {"Effect": "Allow", "Action": "sqs:SendMessageBatch", "Resource": resources}
    return {"Version": "2012-10-17", "Statement": [grant]}


def _may_send_to(document: dict[str, Any]) -> list[str]:
    return [
        resource
        for statement in document["Statement"]
        if "sqs:SendMessage" in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    ]


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
