"""The CloudWatch dashboards: of the deployment, and of a queue."""

from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Dashboard, GraphWidget, IMetric, IWidget, MathExpression, Metric
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config import metrics
from dueline.config.deployment import Deployment
from infra.constructs import watched

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
            _graph("Cost of its SQS requests a day, $", [_cost_of_sqs(levels)], period=_DAY),
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


def _cost_of_deployment(functions: Iterable[IFunction], tables: Sequence[str]) -> list[IMetric]:
    """Return a line of what the functions cost, and one of the tables, as if they were paid by request."""
    each = list(functions)
    invoked = [function.metric_invocations(statistic="Sum", period=_DAY) for function in each]
    ran = [function.metric_duration(statistic="Sum", period=_DAY) for function in each]
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
