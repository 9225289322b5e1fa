"""A log group that deletes its lines after a while."""

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import LogGroup, RetentionDays
from constructs import Construct

RETENTION = {
    1: RetentionDays.ONE_DAY,
    3: RetentionDays.THREE_DAYS,
    5: RetentionDays.FIVE_DAYS,
    7: RetentionDays.ONE_WEEK,
    14: RetentionDays.TWO_WEEKS,
    30: RetentionDays.ONE_MONTH,
    60: RetentionDays.TWO_MONTHS,
    90: RetentionDays.THREE_MONTHS,
    180: RetentionDays.SIX_MONTHS,
    365: RetentionDays.ONE_YEAR,
}


class Log(LogGroup):
    """A log group with a retention, which goes with its stack."""

    def __init__(self, scope: Construct, id: str, *, name: str, retention_days: int) -> None:
        super().__init__(
            scope,
            id,
            log_group_name=name,
            retention=RETENTION[retention_days],
            removal_policy=RemovalPolicy.DESTROY,
        )
