"""The CloudWatch alarms and the SNS topics they are sent to: a set of each deployment, two of a queue with metrics.

The watch mails the rest. An alarm costs by the metrics that it looks at, and none rings for a single event.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aws_cdk import Aws, Duration, Stack
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, MathExpression, TreatMissingData
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sns import ITopic, Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs import watched
from dueline.cdk.grants import key_of
from dueline.config import metrics
from dueline.config.deployment import Deployment
from dueline.config.names import runbook

_INBOUND_TOO_OLD_SECONDS = 300
_TOO_LATE_SECONDS = 60
_LEAST_PERCENT_ON_TIME = 99.9
_MOST_PERCENT_OF_ERRORS = 5
_MOST_PERCENT_OF_FAULTS = 1
_FAILED_FIRINGS = 3


class AlarmTopics(NamedTuple):
    """Where alarms are published: those that wake somebody, and those that can wait."""

    page: Sequence[ITopic]
    ticket: Sequence[ITopic]


class AlarmTopic(Topic):
    """A topic of alarms; its e-mail subscription must be confirmed by the one who gets it.

    Without a key of one's own not encrypted at rest: CloudWatch alarms cannot publish to a topic under the key that
    AWS manages, and an alarm has only names and counts.
    """

    def __init__(self, scope: Construct, id: str, *, name: str, email: str | None, deployment: Deployment) -> None:
        key = key_of(scope, id, deployment=deployment)
        super().__init__(scope, id, topic_name=name, enforce_ssl=True, master_key=key)
        # SNS's default policy allowed it: any policy of one's own replaces that.
        self.add_to_resource_policy(
            PolicyStatement(
                principals=[ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if email:
            self.add_subscription(EmailSubscription(email))


def topics_of_deployment(scope: Construct, *, deployment: Deployment) -> AlarmTopics:
    """Make the two topics of a deployment."""
    names, email = deployment.names, deployment.alarm_email
    page = AlarmTopic(scope, "AlarmTopic", name=names.alarms, email=email, deployment=deployment)
    ticket = AlarmTopic(scope, "TicketTopic", name=names.tickets, email=email, deployment=deployment)
    return AlarmTopics([page], [ticket])


def topics_of_queue(stack: Stack, *, deployment: Deployment, queue: str) -> AlarmTopics:
    """Return the deployment's topics, and that of the queue's owner, which is made if it is for an e-mail address."""
    names, arns = deployment.names, Arns(stack, names=deployment.names)
    page = Topic.from_topic_arn(stack, "AlarmTopic", arns.topic(names.alarms))
    ticket = Topic.from_topic_arn(stack, "TicketTopic", arns.topic(names.tickets))
    owner, owners = deployment.queues[queue].owner, list[ITopic]()
    if owner and owner.startswith("arn:"):
        owners = [Topic.from_topic_arn(stack, "OwnerTopic", owner)]
    elif owner:
        name = names.queue_alarms(queue)
        owners = [AlarmTopic(stack, "OwnerTopic", name=name, email=owner, deployment=deployment)]
    return AlarmTopics([page, *owners], [ticket, *owners])


class Alarms(Construct):
    """Alarms, each with what is wrong and its runbook in its description.

    Those that cost jobs their time wake somebody, and report when they are over. The others are tickets.
    """

    def __init__(self, scope: Construct, id: str, *, topics: AlarmTopics, deployment: Deployment) -> None:
        super().__init__(scope, id)
        self._topics, self._deployment = topics, deployment

    def on_silence(self) -> None:
        """Alarm when the watch reports nothing for a quarter of an hour: it does not run, or sees nothing.

        By CloudWatch's state for insufficient data, in which a new alarm begins without a report: one that takes
        missing data for a breach would ring in each new deployment. It has no other cause: no lateness is below 0.
        """
        self._alarm(
            "WatchSilent",
            watched.own(metrics.WORST_LATENESS, self._deployment.name, statistic="Maximum", minutes=5),
            below=0,
            all_of=3,
            is_silence_reported=True,
            description="The watch does not run, or cannot see: nobody is mailed what goes wrong.",
            page="watch-silent",
        )

    def on_old_messages(self, inbound: IQueue) -> None:
        """Alarm when jobs wait for ingest: past 10 min they are late, and one queue's flood delays the others."""
        self._alarm(
            "InboundAge",
            inbound.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
            at_least=_INBOUND_TOO_OLD_SECONDS,
            description="Jobs wait in the inbound queue: ingest does not keep up, or cannot write to the table.",
            page="inbound-backlog",
        )

    def on_api_faults(self, api: IFunction) -> None:
        """Alarm on the share of the API's requests that failed because AWS did, or that Lambda did not run.

        It answers 503 then, alone or for one of many; and it answers 503 for what cannot be done yet, which is no
        fault. So the statuses of its answers do not show it.
        """
        period = Duration.minutes(5)
        using: dict[str, IMetric] = {
            "faults": watched.own(metrics.API_FAULTS, self._deployment.name, statistic="Sum", minutes=5),
            "throttles": api.metric_throttles(period=period, statistic="Sum"),
            "invocations": api.metric_invocations(period=period, statistic="Sum"),
        }
        failed = "(FILL(faults, 0) + FILL(throttles, 0))"
        share = f"100 * {failed} / (FILL(invocations, 0) + FILL(throttles, 0))"
        self._alarm(
            "ApiFaults",
            MathExpression(expression=share, using_metrics=using, label="% of requests", period=period),
            at_least=_MOST_PERCENT_OF_FAULTS,
            two_of_three=True,
            description="AWS failed the HTTP API, and its callers have to try again. See the api function's log.",
            page="api-faults",
        )

    def on_errors(self, functions: Mapping[str, IFunction]) -> None:
        """Alarm on the largest share of a function's invocations that failed, of whichever version.

        Each invocation counts as an error of 0 or 1, so their average is that share:
        https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
        """
        period = Duration.minutes(15)
        using = {name: each.metric_errors(period=period, statistic="Average") for name, each in functions.items()}
        expression = f"100 * MAX([{', '.join(f'FILL({name}, 0)' for name in using)}])"
        self._alarm(
            "FunctionErrors",
            MathExpression(expression=expression, using_metrics=using, label="% of invocations", period=period),
            at_least=_MOST_PERCENT_OF_ERRORS,
            two_of_three=True,
            description="A function fails time and again. See its log.",
            page="function-errors",
            is_ticket=True,
        )

    def on_failed_firings(self, dead_letters: IQueue) -> None:
        """Alarm when ticks' firings are given up. By what is sent: nobody needs the messages, nor has to purge them."""
        self._alarm(
            "TickDeadLetters",
            dead_letters.metric_number_of_messages_sent(period=Duration.minutes(15), statistic="Sum"),
            at_least=_FAILED_FIRINGS,
            description="Ticks could not be invoked or failed. See the messages of the queue.",
            page="failed-firings",
            is_ticket=True,
        )

    def on_queue(self, queue: str) -> None:
        """Alarm on a queue's own metrics: as the watch mails, but within a minute and not within five."""
        name = self._deployment.name
        self._alarm(
            "Lateness",
            watched.own(metrics.LATENESS, name, queue, statistic="Maximum", minutes=1),
            at_least=_TOO_LATE_SECONDS,
            description=f"Jobs of queue {queue} are late. See the tick function's log for what stopped it.",
            page="late-jobs",
        )
        self._alarm(
            "OnTime",
            watched.percent_on_time(name, queue),
            below=_LEAST_PERCENT_ON_TIME,
            description=f"Under {_LEAST_PERCENT_ON_TIME} % of the jobs of queue {queue} were on time (60 s).",
            page="jobs-not-on-time",
            is_ticket=True,
        )

    def _alarm(
        self,
        id: str,
        metric: IMetric,
        *,
        description: str,
        page: str,
        at_least: float = 1,
        below: float | None = None,
        all_of: int = 1,
        two_of_three: bool = False,
        is_silence_reported: bool = False,
        is_ticket: bool = False,
    ) -> None:
        """Alarm when a metric is at least so much, or below that, in all of some periods or in two of three."""
        operators = ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD, ComparisonOperator.LESS_THAN_THRESHOLD
        alarm = Alarm(
            self,
            id,
            alarm_description=f"{description} Runbook: {runbook(page, base=self._deployment.runbook_url)}",
            metric=metric,
            comparison_operator=operators[below is not None],
            threshold=at_least if below is None else below,
            evaluation_periods=3 if two_of_three else all_of,
            datapoints_to_alarm=2 if two_of_three else all_of,
            # SQS and Lambda report nothing where nothing happens.
            treat_missing_data=TreatMissingData.MISSING if is_silence_reported else TreatMissingData.NOT_BREACHING,
        )
        topics: Sequence[ITopic] = self._topics.ticket if is_ticket else self._topics.page
        for action in map(SnsAction, topics):
            alarm.add_alarm_action(action)
            if not is_ticket:
                alarm.add_ok_action(action)
            if is_silence_reported:
                alarm.add_insufficient_data_action(action)
