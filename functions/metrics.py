"""Report metrics, in CloudWatch's embedded metric format (EMF)."""

from collections.abc import Mapping

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from dueline.config import metrics


def report(values: Mapping[str, float | None], *, deployment: str, queue: str | None = None) -> None:
    """Report metrics of a queue, or of the deployment. Counts of nothing and unknown values (None) are left out."""
    reported = {name: value for name, value in values.items() if value or (value == 0 and name in metrics.TOLD_AT_ZERO)}
    if not reported:
        return
    if queue is not None and not reported.keys() <= metrics.OF_A_QUEUE:
        raise ValueError(f"{', '.join(reported)}: a queue's metrics are {', '.join(sorted(metrics.OF_A_QUEUE))}")
    # An empty service keeps Powertools' own dimension out: metrics are found by deployment and queue alone.
    provider = AmazonCloudWatchEMFProvider(namespace=metrics.NAMESPACE, service="")
    for name, dimension in metrics.dimensions(deployment, queue).items():
        provider.add_dimension(name=name, value=dimension)
    for name, value in reported.items():
        unit = MetricUnit.Seconds if name in metrics.IN_SECONDS else MetricUnit.Count
        provider.add_metric(name=name, unit=unit, value=value)
    provider.flush_metrics()
