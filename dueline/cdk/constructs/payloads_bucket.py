"""The S3 bucket of payloads that are too large for messages and rows."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, LifecycleRule
from constructs import Construct

from dueline.cdk.grants import key_of
from dueline.cdk.nag import acknowledge
from dueline.config.deployment import Deployment
from dueline.core.job import KEEP_DAYS

# A key begins with the days that its object is kept, in four digits, or with this, and then the queue.
_DAYS = "????"
ANY_JOB = f"{_DAYS}/*"
UPLOADS = "uploads/*"
_A_DAY = Duration.days(1)


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
