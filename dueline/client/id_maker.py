"""Id maker: makes the ids of jobs before they are first sent, as the API would make them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dueline.client.dated import Dated
from dueline.client.http_draft import HttpDraft
from dueline.client.id_terms import IdTerms
from dueline.errors import RETRYABLE, DuelineError
from dueline.model.job import JobId, Partition
from dueline.model.routing import JOBS_TO_A_PARTITION, partition_of
from dueline.ports import Clock

# A queue whose count of partitions grows is known to grow after so long; jobs go to the old ones meanwhile.
KNOWN_FOR_SECONDS = 60.0
# The share of that by which it is asked for earlier, lest processes that began at once ask at once for ever.
_SPREAD = 0.5
# No queue has so many partitions, or so long a horizon, which a timedelta may not even hold.
_NONSENSE = 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class _Terms:
    """What is told of a queue: partitions that take jobs, and within what time the route is direct."""

    partitions: int
    direct_horizon: timedelta


class IdMaker:
    """Makes the ids of jobs: what is tried again under its id is the same job, and costs no key.

    Asks `GET /queues` for what ids need, and again after up to a minute; if that fails, what is known is used on: the
    number of partitions only ever grows. `dated` tells the time by AWS's clock; `new_uid` returns a random UUID.
    """

    def __init__(
        self,
        dated: Dated,
        *,
        clock: Clock,
        new_uid: Callable[[], str],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._dated = dated
        self._clock = clock
        self._new_uid = new_uid
        self._jitter = jitter
        self._terms: Mapping[str, _Terms] | None = None
        self._until = 0.0

    def ids(self, queue: str, drafts: Sequence[HttpDraft]) -> list[JobId] | None:
        """Return an id for each job, or None where it is not known what they need.

        A delay begins now, by AWS's clock, and never early. Up to 100 jobs share a partition.
        """
        terms = self._terms_now(self._known(), queue)
        if terms is None:
            return None
        ids: list[JobId] = []
        for start in range(0, len(drafts), JOBS_TO_A_PARTITION):
            number = partition_of(self._new_uid(), terms.partitions)
            partition = Partition(queue=queue, number=number)
            some = drafts[start : start + JOBS_TO_A_PARTITION]
            ids += [self._id(partition, terms.due(at=each.at, delay=each.delay), terms) for each in some]
        return ids

    def terms(self, queue: str) -> IdTerms | None:
        """Ask what the ids of a queue's jobs need; return None where that is not told.

        Raises Throttled or Unavailable.
        """
        try:
            return self._terms_now(self._ask(), queue)
        except RETRYABLE:
            raise
        except DuelineError:
            return None

    def forget(self) -> None:
        """Ask anew the next time: an id was refused."""
        self._terms = None

    def _id(self, partition: Partition, due: datetime, terms: IdTerms) -> JobId:
        return JobId(partition=partition, route=terms.route(due), due=due, uid=self._new_uid())

    def _terms_now(self, known: Mapping[str, _Terms], queue: str) -> IdTerms | None:
        terms, moment = known.get(queue), self._dated.moment()
        if terms is None or moment is None:
            return None
        return IdTerms(partitions=terms.partitions, direct_horizon=terms.direct_horizon, moment=moment)

    def _known(self) -> Mapping[str, _Terms]:
        known = self._terms
        if known is not None and self._clock.monotonic() < self._until:
            return known
        if known is not None:
            # First, so that other threads go on with what is known meanwhile.
            self._until = self._in_a_while()
        terms = self._ask_if_it_answers() or known or {}
        self._terms, self._until = terms, self._in_a_while()
        return terms

    def _ask_if_it_answers(self) -> Mapping[str, _Terms] | None:
        try:
            return self._ask()
        except DuelineError:
            return None

    def _ask(self) -> Mapping[str, _Terms]:
        answer = self._dated.send("GET", "/queues", None, headers={}).content(now=self._clock.now())
        queues = answer.get("queues")
        return {each["queue"]: _terms_of(each) for each in queues if _is_told(each)} if isinstance(queues, list) else {}

    def _in_a_while(self) -> float:
        return self._clock.monotonic() + KNOWN_FOR_SECONDS * (1 - _SPREAD * self._jitter())


def _is_told(queue: Any) -> bool:
    """Tell whether an answer tells what the ids of a queue need: one of an older deployment does not."""
    return (
        isinstance(queue, dict)
        and isinstance(queue.get("queue"), str)
        and all(type(queue.get(name)) is int and 0 < queue[name] < _NONSENSE for name in ("taking", "direct_horizon"))
    )


def _terms_of(queue: Mapping[str, Any]) -> _Terms:
    return _Terms(partitions=queue["taking"], direct_horizon=timedelta(seconds=queue["direct_horizon"]))
