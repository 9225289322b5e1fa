"""CloudWatch: the metrics of a deployment, as series for the console and as figures of the last hour for the doctor."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from dueline.aws import clients
from dueline.aws.botocore_errors import map_caller_errors
from dueline.config import metrics
from dueline.core.queue_settings import PLANNER
from dueline.errors import Unavailable
from dueline.operations.observation import FUNCTIONS, LOOKED_BACK, Figure, Points, Series

if TYPE_CHECKING:
    from boto3 import Session

    from dueline.aws.deployment_context import DeploymentContext

_LONGEST_REQUEST = timedelta(seconds=10)
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_MOST_QUERIES = 500
_MINUTE = 60
# Long enough for a metric to arrive, short enough to leave out what is over.
_NOW = timedelta(minutes=10)
# The TTL guard reports every ten minutes.
_OF_THE_GUARD = timedelta(minutes=15)


class CloudWatchFigures:
    """The metrics of a deployment. `session` is called at the first use: the console works without credentials."""

    def __init__(self, deployment: str, *, session: "Callable[[], Session]") -> None:
        self._deployment = deployment
        self._session = session

    def read(self, series: Sequence[Series], *, start: datetime, end: datetime, period: int) -> list[Points]:
        """Return the points of each series. Raises Forbidden, Throttled or Unavailable."""
        queries = [
            _Query(metrics.NAMESPACE, each.metric, each.statistic, metrics.dimensions(self._deployment, each.queue))
            for each in series
        ]
        with map_caller_errors("reading metrics from CloudWatch"):
            return _points(self._client, queries, start=start, end=end, period=period)

    @cached_property
    def _client(self) -> Any:
        return clients.client("cloudwatch", self._session(), longest=_LONGEST_REQUEST)


class _Query(NamedTuple):
    namespace: str
    metric: str
    statistic: str
    dimensions: dict[str, str]

    def as_request(self, id: str, *, period: int) -> dict[str, Any]:
        dimensions = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        metric = {"Namespace": self.namespace, "MetricName": self.metric, "Dimensions": dimensions}
        return {"Id": id, "MetricStat": {"Metric": metric, "Period": period, "Stat": self.statistic}}


def _points(client: Any, queries: Sequence[_Query], *, start: datetime, end: datetime, period: int) -> list[Points]:
    """Return the points of each query, in order of time. Raises Unavailable where CloudWatch withholds a result."""
    points: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    requests = [each.as_request(f"m{index}", period=period) for index, each in enumerate(queries)]
    for first in range(0, len(requests), _MOST_QUERIES):
        some = requests[first : first + _MOST_QUERIES]
        pages = client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=some, StartTime=start, EndTime=end, ScanBy="TimestampAscending"
        )
        for result in (result for page in pages for result in page["MetricDataResults"]):
            # That is not "no values".
            if result.get("StatusCode") in ("Forbidden", "InternalError"):
                raise Unavailable(f"CloudWatch withheld a metric: {result['StatusCode']}: try again")
            points[result["Id"]] += zip(result["Timestamps"], result["Values"], strict=True)
    return [points[each["Id"]] for each in requests]


@dataclass(frozen=True, slots=True)
class _Metric:
    """The figure that a query is for: its greatest value `back` from now, or the sum."""

    figure: Figure
    query: _Query
    back: timedelta = LOOKED_BACK
    sums: bool = False
    divided_by: float = 1.0


def figures(place: "DeploymentContext") -> dict[str, Any]:
    """Return what was measured in the last hour, by subject."""
    values_of: dict[Figure, float] = {}
    metrics = list(_metrics(place))
    client, start = place.client("cloudwatch"), place.now - LOOKED_BACK
    points = _points(client, [each.query for each in metrics], start=start, end=place.now, period=_MINUTE)
    for each, its in zip(metrics, points, strict=True):
        values = [value / each.divided_by for at, value in its if at >= place.now - each.back]
        before = values_of.get(each.figure, 0.0)
        values_of[each.figure] = sum(values, before) if each.sums else max(values, default=before)
    return {"figures": values_of}


def _metrics(place: "DeploymentContext") -> Iterator[_Metric]:
    yield from _of_queues(place)
    yield from _of_deployment(place)
    names = place.names
    levels = [name for queue in place.deployment.queues for name in place.deployment.levels(queue)]
    for queue in (names.inbound, *levels):
        of = {"QueueName": queue}
        yield _greatest((queue, "age"), "AWS/SQS", "ApproximateAgeOfOldestMessage", of, back=_NOW)
    for table in (names.table, names.state):
        for metric in ("ReadThrottleEvents", "WriteThrottleEvents"):
            yield _summed((table, "throttled"), "AWS/DynamoDB", metric, {"TableName": table})
    for function in FUNCTIONS:
        of = {"FunctionName": names.function(function)}
        yield _summed((function, "errors"), "AWS/Lambda", "Errors", of)
        yield _summed((function, "throttles"), "AWS/Lambda", "Throttles", of)
    yield _greatest(("account", "concurrency"), "AWS/Lambda", "ConcurrentExecutions", {})


def _of_queues(place: "DeploymentContext") -> Iterator[_Metric]:
    for name in (*(queue.name for queue in place.deployment.queues), PLANNER.name):
        of = metrics.dimensions(place.names.deployment, name)
        yield _greatest((name, "lateness"), metrics.NAMESPACE, metrics.LATENESS, of, back=_NOW)
        yield replace(
            _summed((name, "rate"), metrics.NAMESPACE, metrics.DISPATCHED, of), sums=False, divided_by=_MINUTE
        )
        yield _summed((name, "on_time"), metrics.NAMESPACE, metrics.ON_TIME, of)
        yield _summed((name, "delayed"), metrics.NAMESPACE, metrics.DELAYED, of)


def _of_deployment(place: "DeploymentContext") -> Iterator[_Metric]:
    name = place.names.deployment
    of = metrics.dimensions(name)
    yield _summed((name, "api_faults"), metrics.NAMESPACE, metrics.API_FAULTS, of)
    if api_id := place.deployment.api_id:
        yield _summed((name, "api_5xx"), "AWS/ApiGateway", "5xx", {"ApiId": api_id})
    yield _greatest((name, "ttl_off"), metrics.NAMESPACE, metrics.TTL_OFF, of, back=_OF_THE_GUARD)
    yield _greatest((name, "standing_still"), metrics.NAMESPACE, metrics.STANDING_STILL, of)


def _summed(figure: Figure, namespace: str, metric: str, dimensions: dict[str, str]) -> _Metric:
    return _Metric(figure, _Query(namespace, metric, "Sum", dimensions), sums=True)


def _greatest(
    figure: Figure, namespace: str, metric: str, dimensions: dict[str, str], *, back: timedelta = LOOKED_BACK
) -> _Metric:
    return _Metric(figure, _Query(namespace, metric, "Maximum", dimensions), back=back)
