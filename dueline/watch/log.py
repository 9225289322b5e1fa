"""A worker's log, as JSON lines; never a payload."""

from dataclasses import asdict

from aws_lambda_powertools import Logger

from dueline.work.event import Event, Kind

logger = Logger(service="worker")
_QUIET = frozenset({Kind.RECEIVED, Kind.STARTED, Kind.RETURNED})
_LOUD = frozenset({Kind.RETRIED, Kind.FAILED, Kind.LOST, Kind.TROUBLE})


def log(event: Event) -> None:
    """Log what happened: successes as INFO, what someone should look at as WARNING, steps as DEBUG."""
    told = {name: value for name, value in asdict(event).items() if value not in ("", None)}
    if event.kind in _LOUD:
        logger.warning(told.pop("kind"), extra=told)
    elif event.kind in _QUIET:
        logger.debug(told.pop("kind"), extra=told)
    else:
        logger.info(told.pop("kind"), extra=told)
