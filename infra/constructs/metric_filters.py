"""Metrics that CloudWatch adds up from the lines of a log."""

from aws_cdk.aws_cloudwatch import Unit
from aws_cdk.aws_logs import FilterPattern, ILogGroup, MetricFilter
from constructs import Construct

from dueline.config import metrics


class MetricFilters(Construct):
    """Adds up a queue's metrics from the lines that `functions.telemetry.count` writes. Metric filters cost nothing."""

    def __init__(self, scope: Construct, id: str, *, log: ILogGroup) -> None:
        super().__init__(scope, id)
        for name in sorted(metrics.COUNTED):
            self._add(name, field=name, log=log)
        # The API sends jobs when they come, and none is due before.
        self._add(metrics.ON_TIME, field=metrics.DISPATCHED, log=log)

    def _add(self, name: str, *, field: str, log: ILogGroup) -> None:
        MetricFilter(
            self,
            name,
            log_group=log,
            filter_pattern=FilterPattern.number_value(f"$.{field}", ">", 0),
            metric_namespace=metrics.NAMESPACE,
            metric_name=name,
            metric_value=f"$.{field}",
            dimensions={dimension: f"$.{dimension}" for dimension in metrics.dimensions("", "")},
            unit=Unit.COUNT,
        )
