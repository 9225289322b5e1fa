"""The custom metrics: reported by the functions, watched by the alarms, defined here once.

A custom metric costs by the month, so a queue has six of its own, and the rest are the deployment's. Those that nothing
reports cost nothing: `Delayed` where all is on time, and those of schedules where a queue has none.
"""

NAMESPACE = "Dueline"

SUBMITTED = "Submitted"
DISPATCHED = "Dispatched"
CANCELLED = "Cancelled"
LATENESS = "Lateness"
# Of the jobs that were dispatched, those that are visible up to 60 s after their due time, and all others.
ON_TIME = "OnTime"
DELAYED = "Delayed"
OF_A_QUEUE = frozenset({SUBMITTED, DISPATCHED, CANCELLED, LATENESS, ON_TIME, DELAYED})
# By request, and not by invocation: metric filters add them up from the log of the api function.
COUNTED = frozenset({SUBMITTED, DISPATCHED, CANCELLED})

BUFFERED = "Buffered"
INGESTED = "Ingested"
LATE_PATH = "LatePath"
PARKED = "Parked"
API_FAULTS = "ApiFaults"
# Partitions that have no tick any more, and those that never had one, as while a new queue is being deployed.
WITHOUT_TICK = "WithoutTick"
NEVER_TICKED = "NeverTicked"
# 1 while the guard keeps DynamoDB's TTL from collecting, else 0.
TTL_OFF = "TtlOff"
TICK_DURATION = "TickDuration"
# Of a queue's schedules: runs that were submitted, runs that were missed and not caught up, and runs that workers
# skipped because another one had not ended, from the log of the worker.
PLANNED = "Planned"
MISSED = "Missed"
SKIPPED = "Skipped"
OF_SCHEDULES = frozenset({PLANNED, MISSED, SKIPPED})
# Steps that were given up, and schedules that the watch found to stand still.
PLANS_DROPPED = "PlansDropped"
STANDING_STILL = "StandingStill"

IN_SECONDS = frozenset({LATENESS, TICK_DURATION})
# Where none is news.
REPORTED_AT_ZERO = IN_SECONDS | {WITHOUT_TICK, STANDING_STILL, TTL_OFF}


def dimensions(deployment: str, queue: str | None = None) -> dict[str, str]:
    """Return the dimensions of a metric: its deployment and, if it is a queue's, the queue."""
    return {"deployment": deployment} | ({} if queue is None else {"queue": queue})
