"""A worker's log, as JSON lines; never a payload."""

import logging
import os
from dataclasses import fields

from aws_lambda_powertools import Logger

from dueline.worker.watch.event import Event, Kind, ProcessEvent, ProcessKind

logger = Logger(service="worker")
# Where logs are paid for by their size, a line for each success would cost more than all else that a job does.
_QUIET = frozenset({Kind.RECEIVED, Kind.STARTED, Kind.SUCCEEDED, Kind.SKIPPED, Kind.RETURNED})
_LOUD = frozenset({Kind.RETRIED, Kind.FAILED, Kind.LOST, Kind.TROUBLE})


def log(event: Event) -> None:
    """Log an event: as WARNING if someone should look at it, as DEBUG if all is well, else as INFO."""
    if event.kind in _QUIET and logger.log_level > logging.DEBUG:
        return
    values = {each.name: getattr(event, each.name) for each in fields(event)}
    extra = {name: value for name, value in values.items() if value != _DEFAULTS[name]}
    kind = extra.pop("kind")
    if kind in _LOUD:
        logger.warning(kind, extra=extra)
    elif kind in _QUIET:
        logger.debug(kind, extra=extra)
    else:
        logger.info(kind, extra=extra)


# A field with its default is left out of the log.
_DEFAULTS = {each.name: each.default for each in fields(Event)}


def log_process(event: ProcessEvent) -> None:
    """Log what happened to a process: as WARNING if nobody told it to end."""
    values = {each.name: getattr(event, each.name) for each in fields(event)}
    defaults = {each.name: each.default for each in fields(event)}
    extra = {name: value for name, value in values.items() if value != defaults[name]}
    kind = extra.pop("kind")
    if kind in (ProcessKind.DIED, ProcessKind.FAILED):
        logger.warning(kind, extra=extra)
    else:
        logger.info(kind, extra=extra)


def tell_process() -> None:
    """Let each line tell which process wrote it."""
    logger.append_keys(pid=os.getpid())
