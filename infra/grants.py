"""Policy statements that allow actions: on resources, or on some rows of a table."""

from collections.abc import Sequence

from aws_cdk.aws_iam import PolicyStatement


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
