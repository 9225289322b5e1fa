"""Arrivals: what came of jobs that were scheduled, counted."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from dueline.client.answers import Job
from dueline.verify.sandbox import Landed


def by_id(landed: Sequence[Landed]) -> Mapping[str, Landed]:
    """Return the first arrival of each job. What SQS repeats is counted once: delivery is at least once."""
    return {each.id: each for each in reversed(list(landed))}


def lost(jobs: Sequence[Job], landed: Sequence[Landed]) -> int:
    """Return how many of these jobs did not come."""
    came = by_id(landed)
    return sum(job.id not in came for job in jobs)


def again(jobs: Sequence[Job], landed: Sequence[Landed]) -> int:
    """Return how many of these jobs came more than once."""
    came = Counter(each.id for each in list(landed))
    return sum(came[job.id] > 1 for job in jobs)


def lateness(jobs: Sequence[Job], landed: Sequence[Landed]) -> list[float]:
    """Return, in order, how many seconds after it was due each job that came was visible."""
    came = by_id(landed)
    return sorted(seconds(came[job.id].visible, since=job.due) for job in jobs if job.id in came)


def ids_by_number(landed: Sequence[Landed], *, run: str, check: str) -> Mapping[int, set[str]]:
    """Return under which ids the payload of each number came."""
    ids: dict[int, set[str]] = defaultdict(set)
    for each in list(landed):
        body = json.loads(each.body)
        if isinstance(body, dict) and (body.get("verify"), body.get("check")) == (run, check):
            ids[body["n"]].add(each.id)
    return ids


def early(ordered: Sequence[float]) -> int:
    return sum(each < 0 for each in ordered)


def seconds(at: datetime, *, since: datetime) -> float:
    return (at - since).total_seconds()


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the least of the ordered values that so many percent of them do not exceed; NaN if there are none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan
