"""The metrics that functions report, in CloudWatch's embedded metric format.

A queue's own: submitted, dispatched, cancelled and lateness. A custom metric costs by the month,
so whatever needs no queue is counted for the deployment.
"""

from collections.abc import Mapping

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

NAMESPACE = "Dueline"
SUBMITTED = "Submitted"
DISPATCHED = "Dispatched"
CANCELLED = "Cancelled"
LATENESS = "Lateness"
INGESTED = "Ingested"
LATE_PATH = "LatePath"
PARKED = "Parked"
TICK_DURATION = "TickDuration"

_SECONDS = {LATENESS, TICK_DURATION}


def report(metrics: Mapping[str, float | None], *, deployment: str, queue: str | None = None) -> None:
    """Report metrics of a queue, or of the deployment. Counts of nothing are left out, and what is not known (None)."""
    told = {name: value for name, value in metrics.items() if value or (value == 0 and name in _SECONDS)}
    if not told:
        return
    # An empty service keeps Powertools' own dimension out: metrics are found by deployment and queue alone.
    provider = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service="")
    provider.add_dimension(name="deployment", value=deployment)
    if queue is not None:
        provider.add_dimension(name="queue", value=queue)
    for name, value in told.items():
        provider.add_metric(name=name, unit=MetricUnit.Seconds if name in _SECONDS else MetricUnit.Count, value=value)
    provider.flush_metrics()
