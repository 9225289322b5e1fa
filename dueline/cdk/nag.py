"""cdk-nag's findings that stand, each with its reason."""

from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, finding: str, *, reason: str) -> None:
    """Let a finding of the AwsSolutions pack pass on this construct and what it holds."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{finding}", reason=reason))


def acknowledge_wildcard(construct: IConstruct, arn: str, *, reason: str) -> None:
    """Let a policy name resources by this pattern; any other pattern remains a finding."""
    acknowledge(construct, f"IAM5[Resource::{spelled(Stack.of(construct).resolve(arn))}]", reason=reason)


def spelled(value: Any) -> str:
    """Return an ARN as cdk-nag spells it, with `<AWS::Region>` for a reference."""
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return f"<{value['Ref']}>"
    separator, parts = value["Fn::Join"]
    return str(separator).join(map(spelled, parts))
