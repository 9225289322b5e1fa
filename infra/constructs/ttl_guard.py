"""The TTL guard's function, and the rule that has it look around."""

from aws_cdk.aws_events import CfnRule
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_lambda import IAlias
from constructs import Construct

from dueline.config.deployment import Deployment
from dueline.config.environment import PeriodSettings
from infra.arns import Arns
from infra.constructs.function import CoreFunction
from infra.grants import allow
from infra.nag import acknowledge_wildcard

TTL_MINUTES = 10
_TIMEOUT = 300


class TtlGuard(Construct):
    """Switches TTL off on the table of jobs while any partition is hours behind, and may do nothing else."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=deployment.names)
        settings = PeriodSettings(
            deployment=deployment.name, queue_urls=arns.queue_urls, tick_period=deployment.tick_period
        )
        core = CoreFunction(
            self,
            "Ttl",
            name="ttl",
            deployment=deployment,
            timeout=_TIMEOUT,
            environment=settings.to_env(),
            statements=_statements(arns),
        )
        acknowledge_wildcard(core, "*", reason="Listing schedules shows their names, and is allowed on all or none.")
        self.function, self.live = core.function, core.live


class TtlRule(Construct):
    """Fires the guard of TTL.

    A rule of EventBridge's, and not EventBridge Scheduler, which fires the ticks: what stops these is not to stop their
    guard. What Lambda cannot run at once it keeps for six hours, as is its default.
    """

    def __init__(self, scope: Construct, id: str, *, guard: IAlias) -> None:
        super().__init__(scope, id)
        target = CfnRule.TargetProperty(arn=guard.function_arn, id="Guard")
        every = f"rate({TTL_MINUTES} minutes)"
        rule = CfnRule(self, "Rule", schedule_expression=every, state="ENABLED", targets=[target])
        self.arn = rule.attr_arn


def _statements(arns: Arns) -> list[PolicyStatement]:
    ttl = ("dynamodb:DescribeTimeToLive", "dynamodb:UpdateTimeToLive")
    return [
        allow("dynamodb:BatchGetItem", "dynamodb:Query", *ttl, on=[arns.table]),
        allow("dynamodb:BatchGetItem", on=[arns.state]),
        allow("scheduler:ListSchedules", on=["*"]),
    ]
