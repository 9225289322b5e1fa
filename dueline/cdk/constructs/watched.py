"""The metrics that are watched, and the CloudWatch dashboards of them: of the deployment, and of a queue."""

from collections.abc import Mapping, Sequence
from typing import cast

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Dashboard, GraphWidget, IMetric, IWidget, MathExpression, Metric
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config import metrics
from dueline.config.deployment import Deployment

_HALF = 12
_COUNTS = (metrics.QUEUES_LATE, metrics.MISSING_TICKS)


def own(name: str, deployment: str, queue: str | None = None, *, statistic: str, minutes: int) -> IMetric:
    """Return a metric of Dueline's own, of a queue or else of the whole deployment."""
    return Metric(
        namespace=metrics.NAMESPACE,
        metric_name=name,
        dimensions_map=metrics.dimensions(deployment, queue),
        statistic=statistic,
        period=Duration.minutes(minutes),
    )


def percent_on_time(deployment: str, queue: str) -> IMetric:
    """Return the share of an hour's jobs that were on time: none where none was delayed, and one metric is missing."""
    named = {"on_time": metrics.ON_TIME, "delayed": metrics.DELAYED}
    return MathExpression(
        expression="100 * on_time / (on_time + delayed)",
        using_metrics={id: own(name, deployment, queue, statistic="Sum", minutes=60) for id, name in named.items()},
        label="% on time",
        period=Duration.minutes(60),
    )


class DeploymentDashboard(Construct):
    """How all queues are, together and each: new ones are found by search, so no queue changes it."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        functions: Mapping[str, IFunction],
        inbound: IQueue,
        dead_letters: Mapping[str, IQueue],
    ) -> None:
        super().__init__(scope, id)
        name = deployment.name
        tables = [deployment.names.table, deployment.names.state, deployment.names.once]
        throttled = {function: each.metric_throttles() for function, each in functions.items()}
        throttled |= {each: _throttles_of(each) for each in tables}
        board = Dashboard(self, "Dashboard", dashboard_name=name)
        board.add_widgets(
            _graph("Worst lateness, s", [_of_watch(name, metrics.WORST_LATENESS)]),
            _graph("On time, % of an hour", [_of_watch(name, metrics.ON_TIME_SHARE)]),
            _graph("Waiting for ingest", [_waiting(inbound)]),
            _graph("Waiting at SQS, by queue", [_waiting_by_queue(name)]),
            _graph("Dead letters", [_named(_waiting(queue), each) for each, queue in dead_letters.items()]),
            _graph("Queues late, partitions without a tick", [_of_watch(name, each) for each in _COUNTS]),
            _graph("Throttles", [_named(each, name) for name, each in throttled.items()]),
            _graph("Errors", [_named(each.metric_errors(), function) for function, each in functions.items()]),
        )


class QueueDashboard(Construct):
    """How one queue is."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        queue: str,
        levels: Sequence[IQueue],
        dead_letters: IQueue,
    ) -> None:
        super().__init__(scope, id)
        name = deployment.name
        board = Dashboard(self, "Dashboard", dashboard_name=deployment.names.queue(queue))
        if deployment.queues[queue].metrics == "queue":
            jobs = (metrics.SUBMITTED, metrics.DISPATCHED, metrics.CANCELLED)
            board.add_widgets(
                _graph("Lateness, s", [own(metrics.LATENESS, name, queue, statistic="Maximum", minutes=1)]),
                _graph("On time, % of an hour", [percent_on_time(name, queue)]),
                _graph("Jobs", [own(metric, name, queue, statistic="Sum", minutes=5) for metric in jobs]),
            )
        ages = [level.metric_approximate_age_of_oldest_message(statistic="Maximum") for level in levels]
        board.add_widgets(
            _graph("Waiting for workers, by level", [_waiting(level) for level in levels]),
            _graph("Longest wait for a worker, s", ages),
            _graph("Dead letters", [_waiting(dead_letters)]),
        )


def _waiting(queue: IQueue) -> IMetric:
    """Return how many messages wait to be received."""
    return queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(1), statistic="Maximum")


def _graph(title: str, shown: Sequence[IMetric]) -> IWidget:
    return GraphWidget(title=title, left=list(shown), width=_HALF)


def _named(metric: IMetric, label: str) -> IMetric:
    return cast(Metric, metric).with_(label=label)


def _of_watch(deployment: str, metric: str) -> IMetric:
    return own(metric, deployment, statistic="Maximum", minutes=5)


def _waiting_by_queue(deployment: str) -> IMetric:
    # Without quotes, a word of the name is enough, and all of ours have the deployment's.
    search = f'{{AWS/SQS,QueueName}} MetricName="ApproximateNumberOfMessagesVisible" QueueName={deployment}'
    return MathExpression(expression=f"SEARCH('{search}', 'Maximum', 60)", label="", using_metrics={})


def _throttles_of(table: str) -> Metric:
    dimensions = {"TableName": table}
    return Metric(
        namespace="AWS/DynamoDB", metric_name="WriteThrottleEvents", dimensions_map=dimensions, statistic="Sum"
    )
