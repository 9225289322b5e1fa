"""A log group that deletes its lines after a while."""

from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import CfnLogGroup, LogGroup
from constructs import Construct

from dueline.cdk.grants import key_of
from dueline.config.deployment import Deployment


class Log(LogGroup):
    """A log group with a retention, which goes with its stack."""

    def __init__(self, scope: Construct, id: str, *, name: str, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            log_group_name=name,
            encryption_key=key_of(scope, id, deployment=deployment),
            removal_policy=RemovalPolicy.DESTROY,
        )
        cast(CfnLogGroup, self.node.default_child).retention_in_days = deployment.log_retention_days
