"""The table of jobs."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk.aws_dynamodb import (
    Attribute,
    AttributeType,
    BillingMode,
    PointInTimeRecoverySpecification,
    Table,
)
from constructs import Construct


class JobsTable(Table):
    """The append-only table: partition and sort key, and DynamoDB's TTL as garbage collector."""

    def __init__(self, scope: Construct, id: str, *, name: str) -> None:
        super().__init__(
            scope,
            id,
            table_name=name,
            partition_key=Attribute(name="pk", type=AttributeType.STRING),
            sort_key=Attribute(name="sk", type=AttributeType.STRING),
            billing_mode=BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="ttl",
            point_in_time_recovery_specification=PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )

    def come_last(self) -> None:
        """Let CloudFormation create the table after all else in the stack.

        The rollback of a failed first deploy cannot delete a table that is protected from deletion,
        so nothing that may fail is left when the table is made.
        """
        others = [construct for construct in Stack.of(self).node.children if construct is not self]
        self.node.add_dependency(*others)
