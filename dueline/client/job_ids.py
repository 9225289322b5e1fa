"""Job ids that the client makes: a job that is scheduled again under its id is the same job, and costs no key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dueline.client.models import reader
from dueline.core import instant
from dueline.core.clock import TimeBounds
from dueline.core.job import JobId, Partition, Route
from dueline.core.ports import Clock
from dueline.core.request import JOBS_TO_A_PARTITION, Request, partition_of, route_of
from dueline.core.threads import RefreshingValue
from dueline.errors import DuelineError

# A queue whose number of partitions grows is seen to after so long; jobs go to the old ones meanwhile.
CACHE_SECONDS = 60.0
# Jobs go under keys for so long after a read failed: not each of them is to make two requests.
_FAILED_FOR_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class IdParameters:
    """What the id of a queue's job needs: partitions that accept jobs, how soon a job goes the direct route, and now.

    `moment` is the time by AWS's clock.
    """

    partitions: int
    direct_horizon: timedelta
    moment: TimeBounds

    def due(self, *, at: datetime | None, delay: float | None) -> datetime:
        """Return when a job is due, as the API would: in whole milliseconds, and never in the past.

        A delay starts now, and never ends early.
        """
        if delay:
            return instant.round_up(self.moment.latest + timedelta(seconds=delay))
        present = instant.from_epoch_ms(instant.epoch_ms(self.moment.earliest))
        return present if at is None else max(present, instant.round_up(at))

    def route(self, due: datetime) -> Route:
        """Return the route of a job that is due then."""
        # By the earliest time: SQS must be able to hold what goes the direct route.
        return route_of(due, now=self.moment.earliest, direct_horizon=self.direct_horizon)


# Of each queue, its partitions that accept jobs, and its direct horizon.
_Queues = Mapping[str, tuple[int, timedelta]]


class JobIdFactory:
    """Makes the ids of jobs before they are first sent, as the API would make them.

    `read_queues` returns the response of `GET /queues` with the rights on a queue. It is read again after up to a
    minute; if that fails, the last response is used: the number of partitions only ever grows. `moment` returns the
    time by AWS's clock, None before its first response; `new_uid` a random UUID.
    """

    def __init__(
        self,
        read_queues: Callable[[str], Mapping[str, Any]],
        moment: Callable[[], TimeBounds | None],
        *,
        clock: Clock,
        new_uid: Callable[[], str],
    ) -> None:
        self._read_queues = read_queues
        self._moment = moment
        self._clock, self._new_uid = clock, new_uid
        # Up to when the queues are not read again, after a first read failed.
        self._failed_until = 0.0
        # That of the last call, whichever of several threads made it: the caller has rights on each.
        self._queue = ""
        self._queues: RefreshingValue[_Queues] = RefreshingValue(
            lambda: _queues_of(self._read_queues(self._queue)),
            seconds=CACHE_SECONDS,
            clock=clock,
            faults=(DuelineError,),
        )

    def ids(self, queue: str, requests: Sequence[Request]) -> list[JobId] | None:
        """Return an id for each job, or None where the deployment does not say what an id needs.

        A delay starts now, by AWS's clock, and is never shorter. Up to 100 jobs share a partition.
        """
        parameters = self._cached_parameters(queue)
        if parameters is None:
            return None
        ids: list[JobId] = []
        for place, request in enumerate(requests):
            if place % JOBS_TO_A_PARTITION == 0:
                partition = Partition(queue=queue, number=partition_of(self._new_uid(), parameters.partitions))
            due = parameters.due(at=request.at, delay=request.delay)
            ids.append(JobId(partition=partition, route=parameters.route(due), due=due, uid=self._new_uid()))
        return ids

    def parameters(self, queue: str) -> IdParameters | None:
        """Read what the ids of a queue's jobs need; return None where the deployment does not say.

        Raises Forbidden, Throttled or Unavailable.
        """
        self._queue = queue
        return self._parameters_in(self._queues.refresh(), queue)

    def forget(self) -> None:
        """Read the queues again before the next id, after one was refused."""
        self._queues.last = None

    def _cached_parameters(self, queue: str) -> IdParameters | None:
        self._queue = queue
        if self._queues.last is None and self._clock.monotonic() < self._failed_until:
            return None
        try:
            return self._parameters_in(self._queues(), queue)
        except DuelineError:
            self._failed_until = self._clock.monotonic() + _FAILED_FOR_SECONDS
            return None

    def _parameters_in(self, queues: _Queues, queue: str) -> IdParameters | None:
        of_queue, moment = queues.get(queue), self._moment()
        if of_queue is None or moment is None:
            return None
        return IdParameters(partitions=of_queue[0], direct_horizon=of_queue[1], moment=moment)


@reader("queues")
def _queues_of(response: Mapping[str, Any]) -> _Queues:
    """Return the queues in a response that accept jobs. Raises Unavailable when it holds none."""
    return {
        each["queue"]: (each["taking"], timedelta(seconds=each["direct_horizon"]))
        for each in response["queues"]
        if each["taking"]
    }
