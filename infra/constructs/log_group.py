"""A log group that deletes its lines after a while."""

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import LogGroup, RetentionDays
from constructs import Construct

from dueline.config.deployment import Deployment
from infra.grants import key_of

RETENTION = {
    1: RetentionDays.ONE_DAY,
    3: RetentionDays.THREE_DAYS,
    5: RetentionDays.FIVE_DAYS,
    7: RetentionDays.ONE_WEEK,
    14: RetentionDays.TWO_WEEKS,
    30: RetentionDays.ONE_MONTH,
    60: RetentionDays.TWO_MONTHS,
    90: RetentionDays.THREE_MONTHS,
    120: RetentionDays.FOUR_MONTHS,
    150: RetentionDays.FIVE_MONTHS,
    180: RetentionDays.SIX_MONTHS,
    365: RetentionDays.ONE_YEAR,
    400: RetentionDays.THIRTEEN_MONTHS,
    545: RetentionDays.EIGHTEEN_MONTHS,
    731: RetentionDays.TWO_YEARS,
    1096: RetentionDays.THREE_YEARS,
    1827: RetentionDays.FIVE_YEARS,
    2192: RetentionDays.SIX_YEARS,
    2557: RetentionDays.SEVEN_YEARS,
    2922: RetentionDays.EIGHT_YEARS,
    3288: RetentionDays.NINE_YEARS,
    3653: RetentionDays.TEN_YEARS,
}


class Log(LogGroup):
    """A log group with a retention, which goes with its stack."""

    def __init__(self, scope: Construct, id: str, *, name: str, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            log_group_name=name,
            retention=RETENTION[deployment.log_retention_days],
            encryption_key=key_of(scope, id, deployment=deployment),
            removal_policy=RemovalPolicy.DESTROY,
        )
