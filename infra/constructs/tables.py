"""The DynamoDB tables: of jobs, of what is updated, and of which jobs had their effect."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk.aws_dynamodb import (
    Attribute,
    AttributeType,
    BillingMode,
    PointInTimeRecoverySpecification,
    Table,
)
from constructs import Construct


class DurableTable(Table):
    """A table that is hard to lose: paid on demand, keys of strings, and DynamoDB's TTL as garbage collector."""

    def __init__(
        self, scope: Construct, id: str, *, name: str, partition_key: str, sort_key: str | None = None, ttl: str
    ) -> None:
        super().__init__(
            scope,
            id,
            table_name=name,
            partition_key=_string(partition_key),
            sort_key=_string(sort_key) if sort_key else None,
            billing_mode=BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=ttl,
            point_in_time_recovery_specification=PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )

    def come_last(self) -> None:
        """Let CloudFormation create the table after all else that is in the stack by now.

        The rollback of a failed first deploy cannot delete a table that is protected from deletion,
        so nothing that may fail is left when the table is made.
        """
        others = [construct for construct in Stack.of(self).node.children if construct is not self]
        self.node.add_dependency(*others)


class JobsTable(DurableTable):
    """The append-only table of jobs."""

    def __init__(self, scope: Construct, id: str, *, name: str) -> None:
        super().__init__(scope, id, name=name, partition_key="pk", sort_key="sk", ttl="ttl")


class StateTable(DurableTable):
    """The table of what is updated: partition states, and what controls workers.

    Not among the jobs: what producers write must never throttle a lease or a fence.
    """

    def __init__(self, scope: Construct, id: str, *, name: str) -> None:
        super().__init__(scope, id, name=name, partition_key="pk", sort_key="sk", ttl="ttl")


class OnceTable(DurableTable):
    """The table of which jobs had their effect, with the attributes that Powertools' Idempotency gives its rows.

    Source: https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/#dynamodb-table
    """

    def __init__(self, scope: Construct, id: str, *, name: str) -> None:
        super().__init__(scope, id, name=name, partition_key="id", ttl="expiration")


def _string(name: str) -> Attribute:
    return Attribute(name=name, type=AttributeType.STRING)
