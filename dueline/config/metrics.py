"""The custom metrics: reported by the functions, watched by the alarms, defined here once.

A custom metric costs by the month, so a queue has four of its own, and the rest are the deployment's.
"""

NAMESPACE = "Dueline"

SUBMITTED = "Submitted"
DISPATCHED = "Dispatched"
CANCELLED = "Cancelled"
LATENESS = "Lateness"
OF_A_QUEUE = frozenset({SUBMITTED, DISPATCHED, CANCELLED, LATENESS})
# By request, and not by invocation: metric filters add them up from the log of the api function.
COUNTED = frozenset({SUBMITTED, DISPATCHED, CANCELLED})

BUFFERED = "Buffered"
INGESTED = "Ingested"
LATE_PATH = "LatePath"
PARKED = "Parked"
API_FAULTS = "ApiFaults"
WITHOUT_TICK = "WithoutTick"
TICK_DURATION = "TickDuration"
# Of schedules: runs that were submitted, runs that were missed and not caught up, steps that were given up, and
# schedules that the watch found to stand still.
PLANNED = "Planned"
MISSED = "Missed"
# Runs that workers skipped because another one had not ended, told in the log of the worker.
SKIPPED = "Skipped"
PLANS_DROPPED = "PlansDropped"
STANDING_STILL = "StandingStill"

IN_SECONDS = frozenset({LATENESS, TICK_DURATION})
# Where none is news.
TOLD_AT_ZERO = IN_SECONDS | {WITHOUT_TICK, STANDING_STILL}


def dimensions(deployment: str, queue: str | None = None) -> dict[str, str]:
    """Return the dimensions of a metric: its deployment and, if it is a queue's, the queue."""
    return {"deployment": deployment} | ({} if queue is None else {"queue": queue})
