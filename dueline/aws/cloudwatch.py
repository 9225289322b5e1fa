"""CloudWatch: the metrics of a deployment in the last hour, and the figures that its functions log, for the doctor."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
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


# What is requested for a figure, and how far back from now.
_Query = tuple[Figure, dict[str, Any], timedelta]


def figures(place: "DeploymentContext") -> dict[str, Any]:
    """Return what was measured in the last hour, by subject."""
    values_of: dict[Figure, float] = {}
    queries = list(_queries(place))
    for (figure, stat, back), points in zip(queries, _points(place, queries), strict=True):
        values = [value for at, value in points if at >= place.now - back]
        # No value is not 0: SQS reports nothing of an idle queue.
        if values:
            values_of[figure] = sum(values, values_of.get(figure, 0.0)) if stat["Stat"] == "Sum" else max(values)
    return {"figures": values_of}


def _points(place: "DeploymentContext", queries: Sequence[_Query]) -> list[Points]:
    """Return the points of each query, in order of time. Raises Unavailable where CloudWatch withholds a result."""
    points: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    requests: Any = [{"Id": f"m{index}", "MetricStat": stat} for index, (_, stat, _) in enumerate(queries)]
    times: Any = {"StartTime": place.now - LOOKED_BACK, "EndTime": place.now, "ScanBy": "TimestampAscending"}
    paginator = place.client("cloudwatch").get_paginator("get_metric_data")
    for first in range(0, len(requests), _MOST_QUERIES):
        pages = paginator.paginate(MetricDataQueries=requests[first : first + _MOST_QUERIES], **times)
        for result in (result for page in pages for result in page["MetricDataResults"]):
            # That is not "no values".
            if result.get("StatusCode") in ("Forbidden", "InternalError"):
                raise Unavailable(f"CloudWatch withheld a metric: {result['StatusCode']}: try again")
            points[result["Id"]] += zip(result["Timestamps"], result["Values"], strict=True)
    return [points[each["Id"]] for each in requests]


def _queries(place: "DeploymentContext") -> Iterator[_Query]:
    names, own = place.names, place.names.deployment
    yield (own, "api_faults"), _stat(metrics.NAMESPACE, metrics.API_FAULTS, metrics.dimensions(own)), LOOKED_BACK
    levels = [name for queue in place.deployment.queues for name in place.deployment.levels(queue)]
    for queue in (names.inbound, *levels):
        age = _stat("AWS/SQS", "ApproximateAgeOfOldestMessage", {"QueueName": queue}, statistic="Maximum")
        yield (queue, "age"), age, _NOW
    for table in (names.table, names.state):
        for metric in ("ReadThrottleEvents", "WriteThrottleEvents"):
            yield (table, "throttled"), _stat("AWS/DynamoDB", metric, {"TableName": table}), LOOKED_BACK
    for function in FUNCTIONS:
        for figure, metric in (("errors", "Errors"), ("throttles", "Throttles")):
            of = {"FunctionName": names.function(function)}
            yield (function, figure), _stat("AWS/Lambda", metric, of), LOOKED_BACK


def _stat(namespace: str, name: str, of: dict[str, str], *, statistic: str = "Sum") -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in of.items()]
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}
    return {"Metric": metric, "Period": _MINUTE, "Stat": statistic}


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
