"""Looks at CloudWatch: what functions, tables and queues reported in the last hour."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from dueline.aws.doctor.place import Place
from dueline.aws.doctor.queues import levels_of
from dueline.config import metrics
from dueline.doctor.seen import FUNCTIONS, LOOKED_BACK, Figure
from dueline.errors import Unavailable
from dueline.model.queue_settings import PLANNER

# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_MOST_QUERIES = 500
_MINUTE = 60
# Long enough for a metric to come, short enough that what is over is not told.
_NOW = timedelta(minutes=10)
# It reports every ten minutes.
_OF_THE_GUARD = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """A figure: a metric's statistic, by period, of which the greatest counts, or the sum."""

    figure: Figure
    namespace: str
    metric: str
    statistic: str
    dimensions: dict[str, str]
    back: timedelta = LOOKED_BACK
    sums: bool = False
    divided_by: float = 1.0

    def query(self, id: str) -> dict[str, Any]:
        dimensions = [{"Name": name, "Value": value} for name, value in self.dimensions.items()]
        metric = {"Namespace": self.namespace, "MetricName": self.metric, "Dimensions": dimensions}
        return {"Id": id, "MetricStat": {"Metric": metric, "Period": _MINUTE, "Stat": self.statistic}}


def figures(place: Place) -> dict[str, Any]:
    """Return what was measured, by subject."""
    asked, pages = list(_asked(place)), place.client("cloudwatch").get_paginator("get_metric_data")
    found: dict[Figure, float] = {}
    for first in range(0, len(asked), _MOST_QUERIES):
        some = {f"m{number}": each for number, each in enumerate(asked[first : first + _MOST_QUERIES])}
        queries = [each.query(id) for id, each in some.items()]
        for page in pages.paginate(MetricDataQueries=queries, StartTime=place.now - LOOKED_BACK, EndTime=place.now):
            for result in map(_answered, page["MetricDataResults"]):
                each = some[result["Id"]]
                points = zip(result["Timestamps"], result["Values"], strict=True)
                values = [value / each.divided_by for at, value in points if at >= place.now - each.back]
                before = found.get(each.figure, 0.0)
                found[each.figure] = sum(values, before) if each.sums else max(values, default=before)
    return {"figures": found}


def _answered(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result that CloudWatch has; raise Unavailable for one that it owes: no value is none to rely on."""
    if result.get("StatusCode") in ("Forbidden", "InternalError"):
        raise Unavailable(f"CloudWatch did not tell a metric: {result['StatusCode']}: try again")
    return result


def _asked(place: Place) -> Iterator[_Asked]:
    yield from _of_queues(place)
    yield from _of_deployment(place)
    names = place.names
    for queue in (names.inbound, *_levels(place)):
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


def _levels(place: Place) -> Iterator[str]:
    for queue in place.deployment.queues:
        yield from levels_of(place.names, queue.name, queue.settings.priorities)


def _of_queues(place: Place) -> Iterator[_Asked]:
    for name in (*(queue.name for queue in place.deployment.queues), PLANNER.name):
        of = metrics.dimensions(place.names.deployment, name)
        yield _greatest((name, "lateness"), metrics.NAMESPACE, metrics.LATENESS, of, back=_NOW)
        yield replace(
            _summed((name, "rate"), metrics.NAMESPACE, metrics.DISPATCHED, of), sums=False, divided_by=_MINUTE
        )
        yield _summed((name, "on_time"), metrics.NAMESPACE, metrics.ON_TIME, of)
        yield _summed((name, "delayed"), metrics.NAMESPACE, metrics.DELAYED, of)


def _of_deployment(place: Place) -> Iterator[_Asked]:
    name = place.names.deployment
    of = metrics.dimensions(name)
    yield _summed((name, "api_faults"), metrics.NAMESPACE, metrics.API_FAULTS, of)
    if api_id := place.deployment.api_id:
        yield _summed((name, "api_5xx"), "AWS/ApiGateway", "5xx", {"ApiId": api_id})
    yield _greatest((name, "ttl_off"), metrics.NAMESPACE, metrics.TTL_OFF, of, back=_OF_THE_GUARD)
    yield _greatest((name, "standing_still"), metrics.NAMESPACE, metrics.STANDING_STILL, of)


def _summed(figure: Figure, namespace: str, metric: str, dimensions: dict[str, str]) -> _Asked:
    return _Asked(figure=figure, namespace=namespace, metric=metric, statistic="Sum", dimensions=dimensions, sums=True)


def _greatest(
    figure: Figure, namespace: str, metric: str, dimensions: dict[str, str], *, back: timedelta = LOOKED_BACK
) -> _Asked:
    return _Asked(
        figure=figure, namespace=namespace, metric=metric, statistic="Maximum", dimensions=dimensions, back=back
    )
