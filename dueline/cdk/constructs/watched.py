"""The metrics that are watched."""

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import IMetric, MathExpression, Metric
from aws_cdk.aws_sqs import IQueue

from dueline.config import metrics


def own(name: str, deployment: str, queue: str | None = None, *, statistic: str, minutes: int) -> IMetric:
    """Return a metric of Dueline's own, of a queue or else of the whole deployment."""
    return Metric(
        namespace=metrics.NAMESPACE,
        metric_name=name,
        dimensions_map=metrics.dimensions(deployment, queue),
        statistic=statistic,
        period=Duration.minutes(minutes),
    )


def waiting(queue: IQueue) -> IMetric:
    """Return how many messages wait to be received."""
    return queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(1), statistic="Maximum")


def percent_on_time(deployment: str, queue: str) -> IMetric:
    """Return the share of an hour's jobs that were on time: none where none was delayed, and one metric is missing."""
    named = {"on_time": metrics.ON_TIME, "delayed": metrics.DELAYED}
    return MathExpression(
        expression="100 * on_time / (on_time + delayed)",
        using_metrics={id: own(name, deployment, queue, statistic="Sum", minutes=60) for id, name in named.items()},
        label="% on time",
        period=Duration.minutes(60),
    )
