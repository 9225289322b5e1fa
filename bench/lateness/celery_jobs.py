"""What Celery's worker runs: `celery -A bench.lateness.celery_jobs worker`. To be imported where celery is."""

import os
from typing import Any

from celery import Celery

from bench.lateness.record import land

BROKER = "LATENESS_BROKER"
VISIBILITY_TIMEOUT = "LATENESS_VISIBILITY_TIMEOUT"
LAND = "lateness.land"


def app_at(broker: str, *, visibility_timeout: int) -> Any:
    """Return the application of a broker. What is not acknowledged within `visibility_timeout` s is delivered again.

    It must exceed the furthest ETA, or jobs are run again and again, and is 3600 s by default. Source:
    https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout
    What is overdue is looked for each second, as the options of kombu's Redis transport allow; by default it is
    about every 100 s, and ten at a time: https://github.com/celery/kombu/pull/2558
    """
    app: Any = Celery("lateness", broker=broker)
    sweeps = {"unacked_restore_interval": 1, "unacked_restore_throttle": 1, "unacked_restore_limit": 1000}
    app.conf.update(
        broker_transport_options={"visibility_timeout": visibility_timeout, **sweeps},
        broker_connection_retry_on_startup=True,
        task_ignore_result=True,
    )
    return app


if BROKER in os.environ:
    app = app_at(os.environ[BROKER], visibility_timeout=int(os.environ[VISIBILITY_TIMEOUT]))
    app.task(land, name=LAND)
