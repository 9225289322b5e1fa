"""A worker's log, as JSON lines; never a payload."""

import logging
from dataclasses import fields

from aws_lambda_powertools import Logger

from dueline.work.event import Event, Kind

logger = Logger(service="worker")
_LEVELS = {
    Kind.RECEIVED: logging.DEBUG,
    Kind.STARTED: logging.DEBUG,
    Kind.RETURNED: logging.DEBUG,
    Kind.RETRIED: logging.WARNING,
    Kind.FAILED: logging.WARNING,
    Kind.LOST: logging.WARNING,
    Kind.TROUBLE: logging.WARNING,
}


def log(event: Event) -> None:
    """Log what happened: successes as INFO, what someone should look at as WARNING, steps as DEBUG."""
    level = _LEVELS.get(event.kind, logging.INFO)
    if not logger.isEnabledFor(level):
        return
    told = {each.name: getattr(event, each.name) for each in fields(event)}
    told = {name: value for name, value in told.items() if value != _UNTOLD[name]}
    logger.log(level, told.pop("kind"), extra=told)


# What a field holds of which nothing is known.
_UNTOLD = {each.name: each.default for each in fields(Event)}
