"""The watch's function, which mails what is wrong and guards TTL, and the rule that has it look around."""

from aws_cdk.aws_events import CfnRule
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_lambda import IAlias
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.function import CoreFunction
from dueline.cdk.grants import WATCH_ROWS, allow, allow_on_rows
from dueline.cdk.nag import acknowledge_wildcard
from dueline.config.deployment import Deployment
from dueline.config.environment import WatchSettings
from dueline.core.queue_settings import PLANNER

WATCH_MINUTES = 5
_TIMEOUT = 300


class Watch(Construct):
    """Mails each state of a queue once, and switches TTL off on the jobs table while any partition is hours behind."""

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=deployment.names)
        settings = WatchSettings(
            deployment=deployment.name,
            queue_urls=arns.queue_urls,
            tick_period=deployment.tick_period,
            topics=arns.topic(""),
            runbook_url=deployment.runbook_url,
        )
        core = CoreFunction(
            self,
            "Watch",
            name="watch",
            deployment=deployment,
            timeout=_TIMEOUT,
            environment=settings.to_env(),
            statements=_statements(arns, deployment),
        )
        for log in _logs(arns, deployment):
            acknowledge_wildcard(core, log, reason="The streams of a function's log, which Lambda names.")
        acknowledge_wildcard(core, "*", reason="Listing schedules shows their names, and is allowed on all or none.")
        acknowledge_wildcard(core, arns.owners_topics, reason="The topics of queues' owners, whose names begin alike.")
        self.function, self.live = core.function, core.live


class WatchRule(Construct):
    """Fires the watch.

    A rule of EventBridge's, and not EventBridge Scheduler, which fires the ticks: what stops these is not to stop their
    watch. What Lambda cannot run at once it keeps for six hours, as is its default.
    """

    def __init__(self, scope: Construct, id: str, *, watch: IAlias) -> None:
        super().__init__(scope, id)
        target = CfnRule.TargetProperty(arn=watch.function_arn, id="Watch")
        every = f"rate({WATCH_MINUTES} minutes)"
        rule = CfnRule(self, "Rule", schedule_expression=every, state="ENABLED", targets=[target])
        self.arn = rule.attr_arn


def _logs(arns: Arns, deployment: Deployment) -> list[str]:
    """Return the logs of the functions that say how many jobs were on time."""
    return [arns.log(deployment.names.function_log(name)) for name in ("ingest", "planner", "tick")]


def _statements(arns: Arns, deployment: Deployment) -> list[PolicyStatement]:
    ttl = ("dynamodb:DescribeTimeToLive", "dynamodb:UpdateTimeToLive")
    names = deployment.names
    own = [names.inbound_dlq, names.dispatch_dlq, names.queue_dlq(PLANNER.name)]
    elsewhere = {str(topic) for each in deployment.watched().values() if (topic := each.get("owner"))}
    topics = [arns.topic(names.alarms), arns.topic(names.tickets), arns.owners_topics]
    return [
        allow("dynamodb:BatchGetItem", "dynamodb:Query", *ttl, on=[arns.table]),
        allow("dynamodb:BatchGetItem", on=[arns.state]),
        allow_on_rows("dynamodb:UpdateItem", table=arns.state, keys=WATCH_ROWS),
        allow("sqs:GetQueueAttributes", on=[arns.teams_queues, *map(arns.queue, own)]),
        allow("sns:Publish", on=[*topics, *sorted(each for each in elsewhere if each.startswith("arn:"))]),
        allow("logs:FilterLogEvents", on=_logs(arns, deployment)),
        allow("scheduler:ListSchedules", on=["*"]),
    ]
