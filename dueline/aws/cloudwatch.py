"""CloudWatch: metrics of a deployment, and what its functions log, the figures of queues above all."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from dueline.aws.botocore_errors import map_botocore_errors, map_caller_errors
from dueline.config import metrics
from dueline.config.names import Names
from dueline.core import instant
from dueline.core.queue_settings import PLANNER
from dueline.core.retry import in_lanes
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


# Which functions log what of queues, and of the deployment.
_SENDERS = ("ingest", "planner", "tick")
_FUNCTIONS = {metrics.DISPATCHED: (*_SENDERS, "api"), metrics.TTL_OFF: ("watch",)}
# Of 1 MB each: no more of a log is read.
_MOST_PAGES = 50


class LogFigures:
    """The figures of a deployment's queues. `client` returns boto3's for CloudWatch Logs, and is called when needed."""

    def __init__(
        self,
        names: Names,
        *,
        client: Callable[[], Any],
        map_errors: Callable[[str], AbstractContextManager[None]] = map_botocore_errors,
    ) -> None:
        self._names, self._client, self._map_errors = names, client, map_errors

    def read(self, series: Sequence[Series], *, start: datetime, end: datetime, period: int) -> list[Points]:
        """Return the points of each series. Raises Unavailable where a log is too long or gone, or Throttled."""
        points: list[dict[int, float]] = [defaultdict(float) for _ in series]
        by_name = defaultdict[tuple[str | None, str], list[int]](list)
        for index, each in enumerate(series):
            by_name[each.queue, each.metric].append(index)
        for at, line in self._lines({each.metric for each in series}, start=start, end=end):
            slot = int(at.timestamp()) // period * period
            for name, value in line.items():
                for index in by_name.get((line.get("queue"), name), ()):
                    before = points[index][slot]
                    points[index][slot] = before + value if series[index].statistic == "Sum" else max(before, value)
        return [[(instant.from_epoch_ms(1000 * slot), its[slot]) for slot in sorted(its)] for its in points]

    def on_time(self, *, start: datetime, end: datetime) -> dict[str, tuple[float, float]]:
        """Return how many jobs of each queue were on time, and how many were not. Raises as `read` does."""
        counts = defaultdict[str, list[float]](lambda: [0.0, 0.0])
        for _, line in self._lines({metrics.ON_TIME, metrics.DELAYED}, start=start, end=end):
            for index, name in enumerate((metrics.ON_TIME, metrics.DELAYED)):
                counts[line["queue"]][index] += line.get(name, 0)
        return {queue: (on_time, delayed) for queue, (on_time, delayed) in counts.items()}

    def _lines(
        self, fields: set[str], *, start: datetime, end: datetime
    ) -> Iterator[tuple[datetime, Mapping[str, Any]]]:
        by_function = defaultdict[str, set[str]](set)
        for field in fields:
            for function in _FUNCTIONS.get(field, _SENDERS):
                by_function[function].add(field)
        logs = in_lanes(lambda each: self._log(*each, start=start, end=end), by_function.items())
        for lines in logs:
            yield from lines

    def _log(
        self, function: str, fields: set[str], *, start: datetime, end: datetime
    ) -> list[tuple[datetime, Mapping[str, Any]]]:
        """Return the lines of a function that have any of these fields."""
        group, patterns = self._names.function_log(function), [f"($.{name} = *)" for name in sorted(fields)]
        with self._map_errors(f"reading the log {group}"):
            lines, is_whole = read_log(self._client(), group, patterns, start=start, end=end)
        if not is_whole:
            raise Unavailable(f"the log {group} is too long: look at a shorter time")
        return [(at, line) for at, line in lines if fields & line.keys()]


def read_log(
    client: Any, group: str, patterns: Sequence[str], *, start: datetime, end: datetime
) -> tuple[list[tuple[datetime, Mapping[str, Any]]], bool]:
    """Return the lines of a log that one of the patterns matches, and whether that is all of it. `client` is boto3's.

    Of what is not a line of ours, such as Lambda's own, nothing is returned but its time.
    """
    request = {"logGroupName": group, "filterPattern": f"{{ {' || '.join(patterns)} }}"}
    times = {"startTime": instant.epoch_ms(start), "endTime": instant.epoch_ms(end)}
    pages = client.get_paginator("filter_log_events").paginate(**request, **times)
    lines = list[tuple[datetime, Mapping[str, Any]]]()
    for number, page in enumerate(pages, start=1):
        lines += [(instant.from_epoch_ms(each["timestamp"]), _parsed(each["message"])) for each in page["events"]]
        if number == _MOST_PAGES:
            return lines, "nextToken" not in page
    return lines, True


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}
