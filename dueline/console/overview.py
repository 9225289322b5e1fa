"""All queues at a glance: one request for each, at a cost that does not grow with what is scheduled."""

from functools import partial
from typing import Any

from dueline.console import problems
from dueline.console.reach import Reach
from dueline.errors import DuelineError
from dueline.retry.calls import attempt


def overview(reach: Reach) -> dict[str, Any]:
    """Return what the API tells of each queue, and what went wrong with those of which it does not.

    Raises Throttled, Unavailable or Forbidden where there are no queues to be told.
    """
    queues = reach.ask("/queues")["queues"]
    answers = reach.spread(partial(attempt, reach.ask), [f"/queues/{queue['queue']}" for queue in queues])
    return {"queues": [queue | _told(answer) for queue, answer in zip(queues, answers, strict=True)]}


def _told(answer: dict[str, Any] | DuelineError) -> dict[str, Any]:
    return {"error": problems.told(answer)} if isinstance(answer, DuelineError) else answer | {"error": None}
