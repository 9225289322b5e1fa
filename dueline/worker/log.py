"""A worker's log, as JSON lines; never a payload."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from aws_lambda_powertools import Logger

from dueline.config import metrics
from dueline.worker.events import Event, EventKind, ProcessEvent, ProcessKind

logger = Logger(service="worker")
# Where logs are paid for by their size, a line for each success would cost more than all else that a job does.
_QUIET = frozenset({EventKind.RECEIVED, EventKind.STARTED, EventKind.SUCCEEDED, EventKind.SKIPPED, EventKind.RETURNED})
_QUIET |= {EventKind.UNHANDLED}
_LOUD = frozenset({EventKind.RETRIED, EventKind.FAILED, EventKind.LOST, EventKind.TROUBLE, EventKind.UNDECLARED})
_LOUD |= {EventKind.NO_HANDLER}
# The line's message is the event's own kind.
_LOGGED_AS = {"job_kind": "kind"}


def log(event: Event, *, deployment: str = "") -> None:
    """Log an event: as WARNING if someone should look at it, as DEBUG if all is well, else as INFO.

    With a deployment, the line of a job that was skipped for another one is a metric, where CloudWatch has the log.
    """
    if event.kind in _QUIET and logger.log_level > logging.DEBUG:
        return
    write = logger.warning if event.kind in _LOUD else logger.debug if event.kind in _QUIET else logger.info
    is_metric = deployment and event.kind is EventKind.OVERLAPPED
    metric = _metric(metrics.SKIPPED, metrics.dimensions(deployment, event.queue)) if is_metric else {}
    _log(write, event, metric)


def log_process(event: ProcessEvent) -> None:
    """Log what happened to a process: as WARNING if it was not to end."""
    _log(logger.warning if event.kind in (ProcessKind.DIED, ProcessKind.FAILED) else logger.info, event, {})


def _log(write: Callable[..., None], event: Event | ProcessEvent, extra: Mapping[str, Any]) -> None:
    """Log an event's fields, without those that have their default; `kind` is that of the job."""
    values = {each.name: getattr(event, each.name) for each in fields(event) if each.name != "kind"}
    defaults = {each.name: each.default for each in fields(event)}
    changed = {_LOGGED_AS.get(name, name): value for name, value in values.items() if value != defaults[name]}
    write(event.kind, extra={**changed, **extra})


def _metric(name: str, dimensions: Mapping[str, str]) -> dict[str, Any]:
    """Return what makes a line a metric of 1, in CloudWatch's embedded metric format.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    metric = {"Namespace": metrics.NAMESPACE, "Dimensions": [list(dimensions)], "Metrics": [{"Name": name}]}
    return {**dimensions, name: 1, "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [metric]}}


def log_process_id() -> None:
    """Let each line have the id of the process that wrote it."""
    logger.append_keys(pid=os.getpid())
