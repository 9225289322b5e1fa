"""Logs and metrics of the functions.

Lines are JSON, and each byte is paid for: a line holds nothing that its log group's name says already, and success is
logged at DEBUG. Metrics of an invocation are in CloudWatch's embedded metric format (EMF), those of a request in a
shorter line.
"""

import json
import logging
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Self

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from dueline.config import metrics
from dueline.core.dispatch import Dispatcher, DispatchResult
from dueline.core.job import Job

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


def report(values: Values, *, deployment: str, of_queues: Mapping[str, Values] = _NONE) -> None:
    """Report metrics of the deployment and of queues. Counts of nothing and unknown values (None) are left out.

    A line has one value of each metric: so all are one line, but for the second queue and further ones.
    """
    whole = _document(values, metrics.dimensions(deployment))
    of_each = [_document(_of_a_queue(each), metrics.dimensions(deployment, name)) for name, each in of_queues.items()]
    for document in _merge_first_two(*filter(None, (whole, *of_each))):
        _print(document)


def count(values: Values, *, deployment: str, queue: str) -> None:
    """Count what one request did to a queue's jobs, for the metric filters on the log of this function.

    A document of EMF would have 170 bytes more for each request, to say again what the metrics are.
    """
    counted = {name: value for name, value in values.items() if value}
    if not counted.keys() <= metrics.COUNTED:
        raise ValueError(f"{', '.join(counted)}: counted are {', '.join(sorted(metrics.COUNTED))}")
    if counted:
        _print({**metrics.dimensions(deployment, queue), **counted})


def _of_a_queue(values: Values) -> Values:
    allowed = metrics.OF_A_QUEUE | metrics.OF_SCHEDULES
    if not values.keys() <= allowed:
        raise ValueError(f"{', '.join(values)}: a queue's metrics are {', '.join(sorted(allowed))}")
    return values


def _document(values: Values, dimensions: Mapping[str, str]) -> dict[str, Any]:
    """Return metrics as a document of EMF, or nothing where there is nothing to report."""
    # The alarm's share needs both.
    zeros = metrics.REPORTED_AT_ZERO | ({metrics.ON_TIME} if values.get(metrics.DELAYED) else set())
    reported = {name: value for name, value in values.items() if value or (value == 0 and name in zeros)}
    if not reported:
        return {}
    # An empty service keeps Powertools' own dimension out: metrics are found by deployment and queue alone.
    provider = AmazonCloudWatchEMFProvider(namespace=metrics.NAMESPACE, service="")
    for name, dimension in dimensions.items():
        provider.add_dimension(name=name, value=dimension)
    for name, value in reported.items():
        unit = MetricUnit.Seconds if name in metrics.IN_SECONDS else MetricUnit.Count
        provider.add_metric(name=name, unit=unit, value=value)
    return dict(provider.serialize_metric_set())


def _merge_first_two(*documents: dict[str, Any]) -> list[dict[str, Any]]:
    """Return documents with the first two as one, each with its own dimensions, where no value stands in both."""
    if len(documents) < 2 or not documents[0].keys() & documents[1].keys() <= {"_aws", "deployment"}:
        return list(documents)
    first, second, *others = documents
    directives = [directive for each in (first, second) for directive in each["_aws"]["CloudWatchMetrics"]]
    return [{**first, **second, "_aws": {**first["_aws"], "CloudWatchMetrics": directives}}, *others]


def _print(line: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(line, separators=(',', ':'))}\n")


class DispatchMetrics:
    """Counts the jobs that an invocation dispatched, and those on time, by queue. Threads may record at once."""

    def __init__(self) -> None:
        self._counts: list[Counter[tuple[str, str]]] = []

    def record(self, jobs: Sequence[Job], *, now: datetime) -> None:
        """Count jobs that were sent just now."""
        latest = now - ON_TIME
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


@dataclass(frozen=True, kw_only=True)
class RecordingDispatcher(Dispatcher):
    """Records what it sent at once: one pass over a partition can take longer than a minute."""

    dispatched: DispatchMetrics

    @classmethod
    def of(cls, dispatcher: Dispatcher, *, dispatched: DispatchMetrics) -> Self:
        """Return a dispatcher that sends as another one does."""
        return cls(**{each.name: getattr(dispatcher, each.name) for each in fields(dispatcher)}, dispatched=dispatched)

    def dispatch(self, jobs: Sequence[Job], *, until: float) -> DispatchResult:
        result = super().dispatch(jobs, until=until)
        self.dispatched.record(result.dispatched, now=self.clock.now())
        return result
