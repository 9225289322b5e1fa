"""What requests cost a day, by metric math, at AWS's prices in us-east-1.

Without storage, logs, metrics and alarms, and whatever is free: docs/benchmarks.md has the whole bill.
"""

from collections.abc import Iterable, Sequence

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import IMetric, MathExpression, Metric
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sqs import IQueue

_DAY = Duration.days(1)
# $ a million; read 2026-11-22 from AWS's pages of prices. Lambda's are of arm64, and 512 MB.
_INVOCATIONS, _LAMBDA_MILLISECONDS = 0.20, 0.0000133334 * 0.5 * 1_000
_WRITES, _READS = 0.625, 0.125
_SQS = 0.40
# Of a call each, but for batches, which cost less.
_SQS_CALLS = ("NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted", "NumberOfEmptyReceives")


def of_deployment(functions: Iterable[IFunction], tables: Sequence[str]) -> list[IMetric]:
    """Return a line of what the functions cost, and one of the tables, as if they were paid by request."""
    each = list(functions)
    invoked = [function.metric_invocations(statistic="Sum", period=_DAY) for function in each]
    ran = [function.metric_duration(statistic="Sum", period=_DAY) for function in each]
    writes, reads = (
        [_of_table(table, f"Consumed{kind}CapacityUnits") for table in tables] for kind in ("Write", "Read")
    )
    return [
        _priced("Lambda", "f", (_INVOCATIONS, invoked), (_LAMBDA_MILLISECONDS, ran)),
        _priced("DynamoDB, on demand", "t", (_WRITES, writes), (_READS, reads)),
    ]


def of_sqs(levels: Sequence[IQueue]) -> IMetric:
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


def _of_table(table: str, metric: str) -> Metric:
    return Metric(
        namespace="AWS/DynamoDB",
        metric_name=metric,
        dimensions_map={"TableName": table},
        statistic="Sum",
        period=_DAY,
    )
