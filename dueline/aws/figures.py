"""Figures: what the functions of a deployment reported to CloudWatch, with a caller's credentials."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dueline.aws import clients
from dueline.aws.faults import of_callers
from dueline.config import metrics
from dueline.operate.figures import Points, Series

if TYPE_CHECKING:
    from boto3 import Session

_LONGEST_REQUEST = timedelta(seconds=10)
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_MOST_QUERIES = 500


class CloudWatchFigures:
    """The metrics of a deployment. `session` is asked for at the first use: without one there is the API still."""

    def __init__(self, deployment: str, *, session: "Callable[[], Session]") -> None:
        self._deployment = deployment
        self._session = session

    def read(self, asked: Sequence[Series], *, start: datetime, end: datetime, period: int) -> list[Points]:
        """Return the points of each series. Raises Forbidden, Throttled or Unavailable."""
        queries = [self._query(f"m{place}", series, period=period) for place, series in enumerate(asked)]
        found: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
        with of_callers("reading metrics from CloudWatch"):
            for first in range(0, len(queries), _MOST_QUERIES):
                some = queries[first : first + _MOST_QUERIES]
                for page in self._pages.paginate(
                    MetricDataQueries=some, StartTime=start, EndTime=end, ScanBy="TimestampAscending"
                ):
                    for result in page["MetricDataResults"]:
                        found[result["Id"]] += zip(result["Timestamps"], result["Values"], strict=True)
        return [found[query["Id"]] for query in queries]

    @cached_property
    def _pages(self) -> Any:
        return clients.cloudwatch(self._session(), longest=_LONGEST_REQUEST).get_paginator("get_metric_data")

    def _query(self, id: str, series: Series, *, period: int) -> dict[str, Any]:
        dimensions = metrics.dimensions(self._deployment, series.queue)
        metric = {
            "Namespace": metrics.NAMESPACE,
            "MetricName": series.metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
        }
        return {"Id": id, "MetricStat": {"Metric": metric, "Period": period, "Stat": series.statistic}}
