"""What keeps jobs: queues, tables and the bucket of large payloads; encrypted, and kept when their stack is deleted."""

from collections.abc import Sequence
from typing import Any, cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk.aws_dynamodb import (
    Attribute,
    AttributeType,
    BillingMode,
    PointInTimeRecoverySpecification,
    Table,
    TableClass,
    TableEncryption,
)
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, LifecycleRule
from aws_cdk.aws_sqs import CfnQueue, DeadLetterQueue, Queue, QueueEncryption
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.grants import key_of
from dueline.cdk.nag import acknowledge
from dueline.config.deployment import Capacity, Deployment
from dueline.core.job import KEEP_DAYS

LONGEST_RETENTION_DAYS = 14
# A key begins with the days that its object is kept, in four digits, or with this, and then the queue.
_DAYS = "????"
ANY_JOB = f"{_DAYS}/*"
UPLOADS = "uploads/*"
_A_DAY = Duration.days(1)
_CLASSES = {"standard": TableClass.STANDARD, "infrequent": TableClass.STANDARD_INFREQUENT_ACCESS}
# Of the provisioned units: the rest is for what comes before autoscaling has followed.
_TARGET_PERCENT = 70


class DurableQueue(Queue):
    """An encrypted queue that answers to TLS only and outlives its stack.

    Deleting an SQS queue destroys what is in it. A failed first deploy still takes it away.
    A message in a dead-letter queue keeps its first enqueue time, hence the longest retention by default.
    No queue may have it as its dead-letter queue but those in `redriven_from`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        deployment: Deployment,
        visibility_timeout: int = 30,
        retention_days: int = LONGEST_RETENTION_DAYS,
        dead_letter_queue: DeadLetterQueue | None = None,
        redriven_from: Sequence[str] = (),
    ) -> None:
        key = key_of(scope, id, deployment=deployment)
        super().__init__(
            scope,
            id,
            queue_name=name,
            visibility_timeout=Duration.seconds(visibility_timeout),
            retention_period=Duration.days(retention_days),
            dead_letter_queue=dead_letter_queue,
            encryption=QueueEncryption.KMS if key else QueueEncryption.SQS_MANAGED,
            encryption_master_key=key,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        cast(CfnQueue, self.node.default_child).redrive_allow_policy = self._allowed(deployment, redriven_from)

    def _allowed(self, deployment: Deployment, queues: Sequence[str]) -> dict[str, Any]:
        """Let these queues have this one as their dead-letter queue, by names: they need it before they are there."""
        if not queues:
            return {"redrivePermission": "denyAll"}
        arns = Arns(self, names=deployment.names)
        return {"redrivePermission": "byQueue", "sourceQueueArns": [arns.queue(name) for name in queues]}


def keys_of_queue(queue: str) -> str:
    """Return the pattern of the keys of one queue's payloads."""
    return f"{_DAYS}/{queue}/*"


class PayloadsBucket(Bucket):
    """An encrypted bucket that answers to TLS only, outlives its stack, and deletes each object in its own time.

    An object is kept as long as the first part of its key says: prefixes cost nothing, unlike tags.
    """

    def __init__(self, scope: Construct, id: str, *, name: str, deployment: Deployment) -> None:
        key = key_of(scope, id, deployment=deployment)
        super().__init__(
            scope,
            id,
            bucket_name=name,
            encryption=BucketEncryption.KMS if key else BucketEncryption.S3_MANAGED,
            encryption_key=key,
            # S3 then requests a key of the bucket from KMS now and then, and not one for each object.
            bucket_key_enabled=bool(key) or None,
            enforce_ssl=True,
            block_public_access=BlockPublicAccess.BLOCK_ALL,
            lifecycle_rules=_rules(),
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        acknowledge(
            self,
            "S1",
            reason="What Dueline writes is in the API function's log by job; who reads, CloudTrail's data events show,"
            " if turned on. A log of S3's own would need a bucket more, which nobody reads.",
        )


def _rules() -> list[LifecycleRule]:
    kept = [
        LifecycleRule(id=f"keep-{days}-days", prefix=f"{days:04}/", expiration=Duration.days(days))
        for days in KEEP_DAYS
    ]
    uploads = LifecycleRule(id="uploads", prefix="uploads/", expiration=_A_DAY)
    return [*kept, uploads, LifecycleRule(id="parts", abort_incomplete_multipart_upload_after=_A_DAY)]


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
