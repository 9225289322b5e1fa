"""The CloudWatch dashboards: of the deployment, and of a queue."""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Dashboard, GraphWidget, IMetric, IWidget, MathExpression, Metric
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config import metrics
from dueline.config.deployment import Deployment
from infra.constructs import costs, watched

_HALF = 12


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
        throttled = {each: _of_table(each, "WriteThrottleEvents") for each in tables}
        board = Dashboard(self, "Dashboard", dashboard_name=name)
        board.add_widgets(
            _graph("Lateness by queue, s", [_by_queue(metrics.LATENESS, name, "Maximum")]),
            _graph("On time, % of an hour", [_percent_of_all(name)]),
            _graph("Waiting for ingest", [watched.waiting(inbound)]),
            _graph("Waiting at SQS, by queue", [_waiting_by_queue(name)]),
            _graph("Dead letters", [_named(watched.waiting(queue), each) for each, queue in dead_letters.items()]),
            _graph("Partitions without a tick", _counts(name, metrics.WITHOUT_TICK, metrics.NEVER_TICKED)),
            _graph("Throttles", [*_throttles(functions), *(_named(each, table) for table, each in throttled.items())]),
            _graph("Errors", [_named(each.metric_errors(), function) for function, each in functions.items()]),
            _graph("Cost a day, $", costs.of_deployment(functions.values(), tables), period=Duration.days(1)),
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
        jobs = [
            watched.of_queue(metric, name, queue, statistic="Sum", minutes=5)
            for metric in (metrics.SUBMITTED, metrics.DISPATCHED, metrics.CANCELLED)
        ]
        lateness = watched.of_queue(metrics.LATENESS, name, queue, statistic="Maximum", minutes=1)
        ticks = watched.of_queue(metrics.LATENESS, name, queue, statistic="SampleCount", minutes=5)
        ages = [level.metric_approximate_age_of_oldest_message(statistic="Maximum") for level in levels]
        board = Dashboard(self, "Dashboard", dashboard_name=deployment.names.queue(queue))
        board.add_widgets(
            _graph("Lateness, s", [lateness]),
            _graph("On time, % of an hour", [watched.percent_on_time(name, queue)]),
            _graph("Jobs", jobs),
            _graph("Waiting for workers, by level", [watched.waiting(level) for level in levels]),
            _graph("Longest wait for a worker, s", ages),
            _graph("Dead letters", [watched.waiting(dead_letters)]),
            _graph("Ticks in five minutes", [_named(ticks, "ticks")]),
            _graph("Cost of its SQS requests a day, $", [costs.of_sqs(levels)], period=Duration.days(1)),
        )


def _graph(title: str, shown: Sequence[IMetric], *, period: Duration | None = None) -> IWidget:
    return GraphWidget(title=title, left=list(shown), width=_HALF, period=period)


def _named(metric: IMetric, label: str) -> IMetric:
    return metric.with_(label=label) if isinstance(metric, Metric) else metric


def _counts(deployment: str, *names: str) -> list[IMetric]:
    return [watched.of_deployment(name, deployment, statistic="Maximum", minutes=5) for name in names]


def _by_queue(metric: str, deployment: str, statistic: str) -> MathExpression:
    search = f'{{{metrics.NAMESPACE},deployment,queue}} MetricName="{metric}" deployment="{deployment}"'
    return MathExpression(expression=f"SEARCH('{search}', '{statistic}', 60)", label="", using_metrics={})


def _waiting_by_queue(deployment: str) -> MathExpression:
    # Without quotes, a word of the name is enough, and all of ours have the deployment's.
    search = f'{{AWS/SQS,QueueName}} MetricName="ApproximateNumberOfMessagesVisible" QueueName={deployment}'
    return MathExpression(expression=f"SEARCH('{search}', 'Maximum', 60)", label="", using_metrics={})


def _percent_of_all(deployment: str) -> MathExpression:
    on_time, delayed = (
        f'SUM(SEARCH(\'{{{metrics.NAMESPACE},deployment,queue}} MetricName="{metric}" '
        f"deployment=\"{deployment}\"', 'Sum', 3600))"
        for metric in (metrics.ON_TIME, metrics.DELAYED)
    )
    return MathExpression(expression=f"100 * {on_time} / ({on_time} + {delayed})", label="% on time", using_metrics={})


def _throttles(functions: Mapping[str, IFunction]) -> list[IMetric]:
    return [_named(each.metric_throttles(), name) for name, each in functions.items()]


def _of_table(table: str, metric: str) -> Metric:
    return Metric(namespace="AWS/DynamoDB", metric_name=metric, dimensions_map={"TableName": table}, statistic="Sum")
