"""Logs and figures of the functions.

Lines are JSON, and each byte is paid for: a line holds nothing that its log group's name says already, and success is
a figure. Figures are fields of a line, in CloudWatch's embedded metric format (EMF) where they are metrics too.
"""

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from dueline.config import metrics
from dueline.core.job import StoredJob
from dueline.core.ports import Clock

# Lambda gives the root logger the level that is set for the function, and all libraries inherit it. At DEBUG botocore
# logs each request, with payloads and session tokens. Our logger reads that level itself.
logging.root.setLevel(max(logging.root.level, logging.INFO))

Values = Mapping[str, float | None]
_LEFT_OUT = frozenset({"location", "service", "function_name", "function_memory_size", "function_arn"})
_NONE: Mapping[str, Values] = MappingProxyType({})
# SQS shows a job when it is due or, if it was sent after that, when it was sent.
ON_TIME = timedelta(seconds=60)


class _Formatter(LambdaPowertoolsFormatter):
    def serialize(self, log: dict[str, Any]) -> str:  # type: ignore[override]
        return super().serialize({name: value for name, value in log.items() if name not in _LEFT_OUT})


def log(service: str | None = None) -> Logger:
    """Return the logger of a function, by default that of the environment. The same one each time."""
    # Of a line whose time is not of RFC 3339, Lambda takes the level to be INFO:
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
    return Logger(service=service, logger_formatter=_Formatter(use_rfc3339=True))


def report(
    values: Values, *, deployment: str, of_queues: Mapping[str, Values] = _NONE, measured: Collection[str] = ()
) -> None:
    """Log figures, those of the deployment in a line, and those of each queue in one.

    Those of the deployment that are metrics are reported as such; of a queue, only if it is among the `measured`.
    Counts of nothing and unknown values (None) are left out.
    """
    lines = [_line(values, metrics.dimensions(deployment), metrics.OF_DEPLOYMENT)]
    for queue, its in of_queues.items():
        reported = metrics.OF_A_QUEUE if queue in measured else frozenset()
        lines.append(_line(its, metrics.dimensions(deployment, queue), reported))
    for line in filter(None, lines):
        sys.stdout.write(f"{json.dumps(line, separators=(',', ':'))}\n")


def _line(values: Values, dimensions: Mapping[str, str], reported: Collection[str]) -> Mapping[str, Any]:
    """Return figures as a line, or nothing where there is nothing to report."""
    # The share needs both.
    zeros = metrics.REPORTED_AT_ZERO | ({metrics.ON_TIME} if values.get(metrics.DELAYED) else set())
    shown = {name: value for name, value in values.items() if value or (value == 0 and name in zeros)}
    names = [name for name in shown if name in reported]
    return {**dimensions, **shown, **({"_aws": _embedded(names, dimensions)} if names else {})} if shown else {}


def _embedded(names: Sequence[str], dimensions: Mapping[str, str]) -> Any:
    """Return what makes fields of a line metrics.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    units = {name: "Seconds" if name in metrics.IN_SECONDS else "Count" for name in names}
    directive = {
        "Namespace": metrics.NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [{"Name": name, "Unit": unit} for name, unit in units.items()],
    }
    return {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}


class DispatchMetrics:
    """Counts the jobs that an invocation dispatched, and those on time, by queue. Threads may record at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: list[Counter[tuple[str, str]]] = []

    def record(self, jobs: Sequence[StoredJob]) -> None:
        """Count jobs that were just dispatched."""
        latest = self._clock.now() - ON_TIME
        self._counts.append(
            Counter((job.id.queue, metrics.ON_TIME if job.id.due >= latest else metrics.DELAYED) for job in jobs)
        )

    def flush(self) -> dict[str, dict[str, int]]:
        """Return the metrics of each queue, and start over."""
        counts, self._counts = self._counts, []
        counted = sum(counts, Counter[tuple[str, str]]())
        flushed = {queue: {metrics.DISPATCHED: 0, metrics.ON_TIME: 0, metrics.DELAYED: 0} for queue, _ in counted}
        for (queue, name), number in counted.items():
            flushed[queue][name] = number
            flushed[queue][metrics.DISPATCHED] += number
        return flushed
