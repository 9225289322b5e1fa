"""Policy statements that allow actions, and the customer managed key, if queues.yaml names one."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_kms import IKey, Key
from constructs import Construct

from dueline.config.deployment import Deployment


def allow(*actions: str, on: Sequence[str]) -> PolicyStatement:
    return PolicyStatement(actions=list(actions), resources=list(on))


def allow_on_rows(*actions: str, table: str, keys: Sequence[str]) -> PolicyStatement:
    """Allow actions on the rows whose partition keys each fit one of some patterns.

    A queue's begin with its name and `#`: without the `#`, `emails` would open `emails-vip`. A request that names no
    key has no leading keys, and all of none are like anything: hence the second condition.
    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
    """
    statement = allow(*actions, on=[table])
    statement.add_condition("ForAllValues:StringLike", {"dynamodb:LeadingKeys": list(keys)})
    statement.add_condition("Null", {"dynamodb:LeadingKeys": "false"})
    return statement


# The sender of a message or an object has KMS make a data key, and decrypt it: SQS keeps it for a while.
_OF_MESSAGES_AND_OBJECTS = ("kms:Decrypt", "kms:GenerateDataKey")
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html
_OF_ROWS = (*_OF_MESSAGES_AND_OBJECTS, "kms:DescribeKey", "kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo")
_ACTIONS = {
    "dynamodb": _OF_ROWS,
    "s3": _OF_MESSAGES_AND_OBJECTS,
    "sns": _OF_MESSAGES_AND_OBJECTS,
    "sqs": _OF_MESSAGES_AND_OBJECTS,
}


def key_of(scope: Construct, id: str, *, deployment: Deployment) -> IKey | None:
    """Return the deployment's key, or none: then each service encrypts with a key of its own."""
    return Key.from_key_arn(scope, f"{id}Key", deployment.kms_key_arn) if deployment.kms_key_arn else None


# The partition key of what the watches note in the state table: dueline.core.rows.WATCH.
WATCH_ROWS = ("!watch",)


def services_of(statements: Sequence[PolicyStatement]) -> set[str]:
    """Return the services whose actions are allowed, by the names that IAM and boto3 give them."""
    return {action.partition(":")[0] for statement in statements for action in statement.actions}


def with_use_of_key(
    scope: Construct, statements: Sequence[PolicyStatement], *, deployment: Deployment
) -> list[PolicyStatement]:
    """Return statements, and that the services whose actions they allow may use the deployment's key; nobody else."""
    if not deployment.kms_key_arn:
        return list(statements)
    stack, granted = Stack.of(scope), list(statements)
    # A queue's attributes are not encrypted.
    using = [each for each in statements if each.actions != ["sqs:GetQueueAttributes"]]
    for service in sorted(services_of(using) & _ACTIONS.keys()):
        statement = allow(*_ACTIONS[service], on=[deployment.kms_key_arn])
        statement.add_condition("StringEquals", {"kms:ViaService": f"{service}.{stack.region}.{stack.url_suffix}"})
        granted.append(statement)
    return granted
