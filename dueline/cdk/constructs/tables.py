"""The DynamoDB tables: of jobs, of what is updated, and of which jobs had their effect."""

from typing import Any

from aws_cdk import RemovalPolicy, Stack
from aws_cdk.aws_dynamodb import (
    Attribute,
    AttributeType,
    BillingMode,
    PointInTimeRecoverySpecification,
    Table,
    TableClass,
    TableEncryption,
)
from constructs import Construct

from dueline.cdk.grants import key_of
from dueline.cdk.nag import acknowledge
from dueline.config.deployment import Capacity, Deployment

_CLASSES = {"standard": TableClass.STANDARD, "infrequent": TableClass.STANDARD_INFREQUENT_ACCESS}
# Of the provisioned units: the rest is for what comes before autoscaling has followed.
_TARGET_PERCENT = 70


class DurableTable(Table):
    """A table that is hard to lose: keys of strings, and DynamoDB's TTL as garbage collector.

    It is paid on demand and can be restored to any second, unless something else is given.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        deployment: Deployment,
        partition_key: str,
        sort_key: str | None = None,
        ttl: str,
        is_restorable: bool = True,
        **paid: Any,
    ) -> None:
        key = key_of(scope, id, deployment=deployment)
        super().__init__(
            scope,
            id,
            table_name=name,
            partition_key=_string(partition_key),
            sort_key=_string(sort_key) if sort_key else None,
            **{"billing_mode": BillingMode.PAY_PER_REQUEST, **paid},
            time_to_live_attribute=ttl,
            point_in_time_recovery_specification=PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=is_restorable
            ),
            deletion_protection=True,
            encryption=TableEncryption.CUSTOMER_MANAGED if key else None,
            encryption_key=key,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        self._come_last()

    def _come_last(self) -> None:
        """Let CloudFormation create the table after all else that is in the stack by now.

        The rollback of a first deployment that fails deletes what it made, but for a table that is protected from
        deletion: so nothing that may fail is left when the table is made. An import, for which the context has
        `import=yes`, takes no resource whose dependencies it does not take.
        """
        if self.node.try_get_context("import") == "yes":
            return
        others = [construct for construct in Stack.of(self).node.children if construct is not self]
        self.node.add_dependency(*others)


class JobsTable(DurableTable):
    """The append-only table of jobs. How it is paid for, and whether it can be restored, is the deployment's choice."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        capacity, is_restorable = deployment.capacity, deployment.point_in_time_recovery
        paid = dict[str, Any]()
        if capacity:
            paid = {"billing_mode": BillingMode.PROVISIONED}
            paid |= {"read_capacity": capacity.min, "write_capacity": capacity.min}
        super().__init__(
            scope,
            id,
            name=deployment.names.table,
            deployment=deployment,
            partition_key="pk",
            sort_key="sk",
            ttl="ttl",
            is_restorable=is_restorable,
            **paid,
            table_class=_CLASSES[deployment.storage],
        )
        if capacity:
            self._follow_the_load(capacity)
        if not is_restorable:
            acknowledge(self, "DDB3", reason="queues.yaml has point_in_time_recovery: false.")

    def _follow_the_load(self, capacity: Capacity) -> None:
        bounds = {"min_capacity": capacity.min, "max_capacity": capacity.max}
        for scaling in (self.auto_scale_write_capacity(**bounds), self.auto_scale_read_capacity(**bounds)):
            scaling.scale_on_utilization(target_utilization_percent=_TARGET_PERCENT)


def add_tables(scope: Construct, *, deployment: Deployment) -> None:
    """Add the tables, each after all else that is in the stack: first the one that may fail, by its capacity."""
    names = deployment.names
    JobsTable(scope, "Table", deployment=deployment)
    # Partition states, and what controls workers. Not among the jobs: what producers write must never throttle a lease
    # or a fence.
    DurableTable(scope, "State", name=names.state, deployment=deployment, partition_key="pk", sort_key="sk", ttl="ttl")
    # Which jobs had their effect, with the attributes that Powertools' Idempotency gives its rows:
    # https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/#dynamodb-table
    DurableTable(scope, "Once", name=names.once, deployment=deployment, partition_key="id", ttl="expiration")


def _string(name: str) -> Attribute:
    return Attribute(name=name, type=AttributeType.STRING)
