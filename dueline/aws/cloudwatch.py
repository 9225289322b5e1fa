"""CloudWatch: the metrics of a deployment in the last hour, and the figures that its functions log, for the doctor."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from dueline.aws.botocore_errors import map_caller_errors
from dueline.aws.log_figures import LogFigures
from dueline.config import metrics
from dueline.core.queue_settings import PLANNER
from dueline.errors import Unavailable
from dueline.operations.observation import FUNCTIONS, LOOKED_BACK, Figure, Points, Series

if TYPE_CHECKING:
    from dueline.aws.deployment_context import DeploymentContext

# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_MOST_QUERIES = 500
_MINUTE = 60
# Long enough for a metric to arrive, short enough to leave out what is over.
_NOW = timedelta(minutes=10)


# What is read of a queue's lines, and by which statistic of a minute.
_LOGGED = {
    "lateness": (metrics.LATENESS, "Maximum"),
    "rate": (metrics.DISPATCHED, "Sum"),
    "on_time": (metrics.ON_TIME, "Sum"),
    "delayed": (metrics.DELAYED, "Sum"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Metric:
    """A metric and the figure that it is for: the sum of its values `back` from now, or their maximum."""

    figure: Figure
    namespace: str
    name: str
    statistic: str
    dimensions: dict[str, str]
    back: timedelta = LOOKED_BACK

    def as_request(self, id: str, *, period: int) -> dict[str, Any]:
        dimensions = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        metric = {"Namespace": self.namespace, "MetricName": self.name, "Dimensions": dimensions}
        return {"Id": id, "MetricStat": {"Metric": metric, "Period": period, "Stat": self.statistic}}


def _points(client: Any, queries: Sequence[_Metric], *, start: datetime, end: datetime, period: int) -> list[Points]:
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


def figures(place: "DeploymentContext") -> dict[str, Any]:
    """Return what was measured in the last hour, by subject."""
    values_of: dict[Figure, float] = {}
    metrics = list(_metrics(place))
    client, start = place.client("cloudwatch"), place.now - LOOKED_BACK
    points = _points(client, metrics, start=start, end=place.now, period=_MINUTE)
    for each, its in zip(metrics, points, strict=True):
        values = [value for at, value in its if at >= place.now - each.back]
        # No value is not 0: SQS reports nothing of an idle queue.
        if values:
            before = values_of.get(each.figure, 0.0)
            values_of[each.figure] = sum(values, before) if each.statistic == "Sum" else max(values)
    return {"figures": values_of}


def queue_figures(place: "DeploymentContext") -> dict[str, Any]:
    """Return what functions logged of each queue: lateness, the most jobs a second, and how many were on time or not.

    And whether TTL was off.
    """
    names = [*(queue.name for queue in place.deployment.queues), PLANNER.name]
    series = [Series(queue=name, metric=metric, statistic=each) for name in names for metric, each in _LOGGED.values()]
    ttl = Series(queue=None, metric=metrics.TTL_OFF, statistic="Maximum")
    logs = LogFigures(place.names, client=partial(place.client, "logs"), map_errors=map_caller_errors)
    *points, off = logs.read([*series, ttl], start=place.now - LOOKED_BACK, end=place.now, period=_MINUTE)
    figures = dict[Figure, float]()
    whats = [(name, what) for name in names for what in _LOGGED]
    for (name, what), its in zip(whats, points, strict=True):
        recent = max((value for at, value in its if at >= place.now - _NOW), default=0.0)
        values = [value for _, value in its]
        one = {"lateness": recent, "rate": max(values, default=0.0) / _MINUTE}
        figures[name, what] = one[what] if what in one else sum(values)
    figures[place.names.deployment, "ttl_off"] = max((value for at, value in off if at >= place.now - _NOW), default=0)
    return {"queue_figures": figures}


def _metrics(place: "DeploymentContext") -> Iterator[_Metric]:
    names, own = place.names, place.names.deployment
    yield _summed((own, "api_faults"), metrics.NAMESPACE, metrics.API_FAULTS, metrics.dimensions(own))
    levels = [name for queue in place.deployment.queues for name in place.deployment.levels(queue)]
    for queue in (names.inbound, *levels):
        age, of = "ApproximateAgeOfOldestMessage", {"QueueName": queue}
        yield _Metric(
            figure=(queue, "age"), namespace="AWS/SQS", name=age, statistic="Maximum", dimensions=of, back=_NOW
        )
    for table in (names.table, names.state):
        for metric in ("ReadThrottleEvents", "WriteThrottleEvents"):
            yield _summed((table, "throttled"), "AWS/DynamoDB", metric, {"TableName": table})
    for function in FUNCTIONS:
        of = {"FunctionName": names.function(function)}
        yield _summed((function, "errors"), "AWS/Lambda", "Errors", of)
        yield _summed((function, "throttles"), "AWS/Lambda", "Throttles", of)


def _summed(figure: Figure, namespace: str, name: str, dimensions: dict[str, str]) -> _Metric:
    return _Metric(figure=figure, namespace=namespace, name=name, statistic="Sum", dimensions=dimensions)
