"""A new version of the API's function that takes over by and by, and is taken back by an alarm."""

from collections.abc import Sequence

from aws_cdk.aws_cloudwatch import IAlarm
from aws_cdk.aws_codedeploy import AutoRollbackConfig, LambdaDeploymentConfig, LambdaDeploymentGroup
from aws_cdk.aws_iam import IRole, PolicyDocument, Role, ServicePrincipal
from aws_cdk.aws_lambda import Alias
from constructs import Construct

from dueline.config.names import Names
from infra.arns import Arns
from infra.grants import allow
from infra.nag import acknowledge_wildcard

_MOVE = ("lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig")


class Canary(Construct):
    """Has CodeDeploy move the API's alias: a tenth of the requests for five minutes, then all.

    When an alarm fires meanwhile, CodeDeploy moves the alias back, and CloudFormation rolls back the whole stack. An
    alias that is new is made at once.
    """

    def __init__(self, scope: Construct, id: str, *, names: Names, live: Alias, alarms: Sequence[IAlarm]) -> None:
        super().__init__(scope, id)
        LambdaDeploymentGroup(
            self,
            "Group",
            alias=live,
            deployment_config=LambdaDeploymentConfig.CANARY_10_PERCENT_5_MINUTES,
            alarms=alarms,
            auto_rollback=AutoRollbackConfig(deployment_in_alarm=True, failed_deployment=True, stopped_deployment=True),
            role=self._role(Arns(self, names=names)),
        )

    def _role(self, arns: Arns) -> IRole:
        """Allow to move this alias: AWS's own policy for CodeDeploy allows to move all of the account's."""
        statements = [
            allow(*_MOVE, on=[arns.function("api"), arns.live("api")]),
            allow("cloudwatch:DescribeAlarms", on=["*"]),
        ]
        role = Role(
            self,
            "Role",
            assumed_by=ServicePrincipal("codedeploy.amazonaws.com"),
            inline_policies={"grants": PolicyDocument(statements=statements)},
        )
        acknowledge_wildcard(role, "*", reason="It reads the states of alarms, and AWS's own policy names none either.")
        return role.without_policy_updates()
