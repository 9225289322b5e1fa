"""The figures that functions log as fields of lines, and which of them are CloudWatch metrics: defined here once.

A custom metric costs by the month. So a deployment has five of the watch, and one that is reported when AWS fails the
API. A queue's own are fields of log lines, and metrics only with `metrics: queue` in queues.yaml.
"""

NAMESPACE = "Dueline"

# Of the deployment, each five minutes: how late the latest job is, how many queues are late, how many messages are in
# dead-letter queues, how many partitions no tick reads, and the share of the last hour's jobs that were on time.
WORST_LATENESS = "WorstLateness"
QUEUES_LATE = "QueuesLate"
DEAD_LETTERS = "DeadLetters"
MISSING_TICKS = "MissingTicks"
ON_TIME_SHARE = "OnTimeShare"
OF_THE_WATCH = frozenset({WORST_LATENESS, QUEUES_LATE, DEAD_LETTERS, MISSING_TICKS, ON_TIME_SHARE})
API_FAULTS = "ApiFaults"
OF_DEPLOYMENT = OF_THE_WATCH | {API_FAULTS}

SUBMITTED = "Submitted"
DISPATCHED = "Dispatched"
CANCELLED = "Cancelled"
LATENESS = "Lateness"
# Of the jobs that were dispatched, those that are visible up to 60 s after their due time, and all others.
ON_TIME = "OnTime"
DELAYED = "Delayed"
# Of a queue's schedules: runs that were submitted, and runs that were missed and not caught up.
PLANNED = "Planned"
MISSED = "Missed"
OF_A_QUEUE = frozenset({SUBMITTED, DISPATCHED, CANCELLED, LATENESS, ON_TIME, DELAYED, PLANNED, MISSED})

# Fields alone.
BUFFERED = "Buffered"
INGESTED = "Ingested"
LATE_PATH = "LatePath"
PARKED = "Parked"
TICK_DURATION = "TickDuration"
# Steps that were given up.
PLANS_DROPPED = "PlansDropped"
# 1 while DynamoDB's TTL is off, or should be, else 0.
TTL_OFF = "TtlOff"

IN_SECONDS = frozenset({WORST_LATENESS, LATENESS, TICK_DURATION})
# Where none is news.
REPORTED_AT_ZERO = OF_THE_WATCH | {TTL_OFF}


def dimensions(deployment: str, queue: str | None = None) -> dict[str, str]:
    """Return the dimensions of a metric: its deployment and, if it is a queue's, the queue."""
    return {"deployment": deployment} | ({} if queue is None else {"queue": queue})
