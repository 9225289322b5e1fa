"""The figures of queues, which the functions log as fields of lines: read from CloudWatch Logs."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from dueline.aws.botocore_errors import map_botocore_errors
from dueline.config import metrics
from dueline.config.names import Names
from dueline.core import instant
from dueline.core.retry import in_lanes
from dueline.errors import Unavailable
from dueline.operations.observation import Points, Series

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
