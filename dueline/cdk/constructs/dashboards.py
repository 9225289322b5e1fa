"""The CloudWatch dashboards: of the deployment, and of a queue."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Dashboard, GraphWidget, IMetric, IWidget, MathExpression, Metric
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.cdk.constructs import watched
from dueline.config import metrics
from dueline.config.deployment import Deployment

_HALF = 12
_COUNTS = (metrics.QUEUES_LATE, metrics.MISSING_TICKS)


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
        throttled |= {each: _of_table(each, "WriteThrottleEvents") for each in tables}
        board = Dashboard(self, "Dashboard", dashboard_name=name)
        board.add_widgets(
            _graph("Worst lateness, s", [_of_watch(name, metrics.WORST_LATENESS)]),
            _graph("On time, % of an hour", [_of_watch(name, metrics.ON_TIME_SHARE)]),
            _graph("Waiting for ingest", [watched.waiting(inbound)]),
            _graph("Waiting at SQS, by queue", [_waiting_by_queue(name)]),
            _graph("Dead letters", [_named(watched.waiting(queue), each) for each, queue in dead_letters.items()]),
            _graph("Queues late, partitions without a tick", [_of_watch(name, each) for each in _COUNTS]),
            _graph("Throttles", [_named(each, name) for name, each in throttled.items()]),
            _graph("Errors", [_named(each.metric_errors(), function) for function, each in functions.items()]),
            _graph("Cost a day, $", _cost_of_deployment(functions.values(), tables), period=_DAY),
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
            watched.own(metric, name, queue, statistic="Sum", minutes=5)
            for metric in (metrics.SUBMITTED, metrics.DISPATCHED, metrics.CANCELLED)
        ]
        lateness = watched.own(metrics.LATENESS, name, queue, statistic="Maximum", minutes=1)
        ages = [level.metric_approximate_age_of_oldest_message(statistic="Maximum") for level in levels]
        board = Dashboard(self, "Dashboard", dashboard_name=deployment.names.queue(queue))
        if deployment.queues[queue].metrics == "queue":
            board.add_widgets(
                _graph("Lateness, s", [lateness]),
                _graph("On time, % of an hour", [watched.percent_on_time(name, queue)]),
                _graph("Jobs", jobs),
            )
        board.add_widgets(
            _graph("Waiting for workers, by level", [watched.waiting(level) for level in levels]),
            _graph("Longest wait for a worker, s", ages),
            _graph("Dead letters", [watched.waiting(dead_letters)]),
            _graph("Cost of its SQS requests a day, $", [_cost_of_sqs(levels)], period=_DAY),
        )


def _graph(title: str, shown: Sequence[IMetric], *, period: Duration | None = None) -> IWidget:
    return GraphWidget(title=title, left=list(shown), width=_HALF, period=period)


def _named(metric: IMetric, label: str) -> IMetric:
    return cast(Metric, metric).with_(label=label)


def _of_watch(deployment: str, metric: str) -> IMetric:
    return watched.own(metric, deployment, statistic="Maximum", minutes=5)


def _waiting_by_queue(deployment: str) -> IMetric:
    # Without quotes, a word of the name is enough, and all of ours have the deployment's.
    search = f'{{AWS/SQS,QueueName}} MetricName="ApproximateNumberOfMessagesVisible" QueueName={deployment}'
    return MathExpression(expression=f"SEARCH('{search}', 'Maximum', 60)", label="", using_metrics={})


def _of_table(table: str, metric: str, *, period: Duration | None = None) -> Metric:
    return Metric(
        namespace="AWS/DynamoDB",
        metric_name=metric,
        dimensions_map={"TableName": table},
        statistic="Sum",
        period=period,
    )


# What requests cost a day, at AWS's prices in us-east-1. Without storage, logs, metrics and alarms, and whatever is
# free: docs/benchmarks.md has the whole bill.
_DAY = Duration.days(1)
# $ a million; read 2026-11-22 from AWS's pages of prices. Lambda's are of arm64, and 512 MB.
_INVOCATIONS, _LAMBDA_MILLISECONDS = 0.20, 0.0000133334 * 0.5 * 1_000
_WRITES, _READS = 0.625, 0.125
_SQS = 0.40
# Of a call each, but for batches, which cost less.
_SQS_CALLS = ("NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted", "NumberOfEmptyReceives")


def _cost_of_deployment(functions: Collection[IFunction], tables: Sequence[str]) -> list[IMetric]:
    """Return a line of what the functions cost, and one of the tables, as if they were paid by request."""
    invoked = [function.metric_invocations(statistic="Sum", period=_DAY) for function in functions]
    ran = [function.metric_duration(statistic="Sum", period=_DAY) for function in functions]
    writes, reads = (
        [_of_table(table, f"Consumed{kind}CapacityUnits", period=_DAY) for table in tables]
        for kind in ("Write", "Read")
    )
    return [
        _priced("Lambda", "f", (_INVOCATIONS, invoked), (_LAMBDA_MILLISECONDS, ran)),
        _priced("DynamoDB, on demand", "t", (_WRITES, writes), (_READS, reads)),
    ]


def _cost_of_sqs(levels: Sequence[IQueue]) -> IMetric:
    """Return what a queue's calls of SQS cost at most, each message in a call of its own."""
    called = [level.metric(name, statistic="Sum", period=_DAY) for level in levels for name in _SQS_CALLS]
    return _priced("SQS, at most", "q", (_SQS, called))


def _priced(label: str, prefix: str, *parts: tuple[float, Sequence[IMetric]]) -> IMetric:
    """Return a sum of counts times prices. The ids of what is counted begin with the prefix: a graph has each once."""
    terms: list[str] = []
    named: dict[str, IMetric] = {}
    for part, (price, counted) in enumerate(parts):
        ids = [f"{prefix}{part}x{number}" for number in range(len(counted))]
        named |= dict(zip(ids, counted, strict=True))
        terms.append(f"{price} / 1000000 * SUM([{', '.join(ids)}])")
    return MathExpression(expression=" + ".join(terms), using_metrics=named, label=label, period=_DAY)
