"""A worker's log, as JSON lines; never a payload."""

import logging
from dataclasses import fields

from aws_lambda_powertools import Logger

from dueline.worker.watch.event import Event, Kind

logger = Logger(service="worker")
# A line a success would cost more than all else that Dueline does for a job, where logs are paid for by their size.
_QUIET = frozenset({Kind.RECEIVED, Kind.STARTED, Kind.SUCCEEDED, Kind.SKIPPED, Kind.RETURNED})
_LOUD = frozenset({Kind.RETRIED, Kind.FAILED, Kind.LOST, Kind.TROUBLE})


def log(event: Event) -> None:
    """Log what happened: what someone should look at as WARNING, what goes well as DEBUG."""
    if event.kind in _QUIET and logger.log_level > logging.DEBUG:
        return
    told = {each.name: getattr(event, each.name) for each in fields(event)}
    told = {name: value for name, value in told.items() if value != _UNTOLD[name]}
    kind = told.pop("kind")
    if kind in _LOUD:
        logger.warning(kind, extra=told)
    elif kind in _QUIET:
        logger.debug(kind, extra=told)
    else:
        logger.info(kind, extra=told)


# What a field holds of which nothing is known.
_UNTOLD = {each.name: each.default for each in fields(Event)}
