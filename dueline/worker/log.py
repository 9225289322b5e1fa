"""A worker's log, as JSON lines; never a payload."""

import logging
import os
from collections.abc import Callable
from dataclasses import fields

from aws_lambda_powertools import Logger

from dueline.worker.events import Event, EventKind, ProcessEvent, ProcessKind

logger = Logger(service="worker")
# Where logs are paid for by their size, a line for each success would cost more than all else that a job does.
_QUIET = frozenset({EventKind.RECEIVED, EventKind.STARTED, EventKind.SUCCEEDED, EventKind.SKIPPED, EventKind.RETURNED})
_QUIET |= {EventKind.UNHANDLED}
_LOUD = frozenset({EventKind.RETRIED, EventKind.FAILED, EventKind.LOST, EventKind.TROUBLE, EventKind.UNDECLARED})
_LOUD |= {EventKind.NO_HANDLER}
# The line's message is the event's own kind.
_LOGGED_AS = {"job_kind": "kind"}


def log(event: Event) -> None:
    """Log an event: as WARNING if someone should look at it, as DEBUG if all is well, else as INFO."""
    if event.kind in _QUIET and logger.log_level > logging.DEBUG:
        return
    _log(logger.warning if event.kind in _LOUD else logger.debug if event.kind in _QUIET else logger.info, event)


def log_process(event: ProcessEvent) -> None:
    """Log what happened to a process: as WARNING if it was not to end."""
    _log(logger.warning if event.kind in (ProcessKind.DIED, ProcessKind.FAILED) else logger.info, event)


def _log(write: Callable[..., None], event: Event | ProcessEvent) -> None:
    """Log an event's fields, without those that have their default; `kind` is that of the job."""
    values = {each.name: getattr(event, each.name) for each in fields(event) if each.name != "kind"}
    defaults = {each.name: each.default for each in fields(event)}
    changed = {_LOGGED_AS.get(name, name): value for name, value in values.items() if value != defaults[name]}
    write(event.kind, extra=changed)


def log_process_id() -> None:
    """Let each line have the id of the process that wrote it."""
    logger.append_keys(pid=os.getpid())
