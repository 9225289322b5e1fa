"""Those who schedule: the functions of the HTTP API, and direct producers, with real submissions and real retries."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, cast

from bench.scale.invocations import Region
from bench.scale.record import EXPIRES_MS
from dueline.errors import DuelineError
from dueline.model.job import Job, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.request import Request
from dueline.ports import Payloads
from dueline.protocol.breaker import Breaker
from dueline.protocol.preparation import Preparation
from dueline.protocol.sender import Sender
from dueline.protocol.submission import JobFactory
from dueline.protocol.submit import Submit
from dueline.protocol.table_route import TableRoute
from dueline.protocol.write_through import NotInTable, WriteThrough
from dueline.retry.calls import LANES, Calls
from dueline.retry.pace import FIRST_ITEMS, Pace
from dueline.retry.patience import Patience

Results = Sequence[Job | DuelineError]
_DIRECT_HORIZON = timedelta(seconds=890)
_MOST_AT_ONCE = 500


class Process:
    """A process that submits, with breakers of its own: a function of the API, which `is_buffered`, or a producer."""

    def __init__(self, region: Region, *, is_buffered: bool) -> None:
        self._region, self._is_buffered = region, is_buffered
        self.at = region.environment()
        self._breakers: dict[str, Breaker] = {}

    def submit(self, requests: Sequence[Request], *, queue: str) -> Results:
        """Submit jobs as the API's function does; note which are in the table, or sent."""
        region, deployed = self._region, self._region.aws.deployed
        self.at.compute(region.aws.functions.api_cpu)
        results = self._submit(queue).run(requests, until=self.at.monotonic() + deployed.api_sends_for)
        for each in results:
            if isinstance(each, Job) and not (isinstance(each, NotInTable) and each.state is State.ACCEPTED):
                region.record_of(str(each.id)).note_written(str(each.id))
        return results

    def _submit(self, name: str) -> Submit:
        region, at, most = self._region, self.at, self._region.aws.deployed.api_longest_request
        queue = QueueSettings(name=name, partitions=1, retention=timedelta(milliseconds=EXPIRES_MS))
        table = region.table(at, most=most)
        dispatcher = region.dispatcher(at, table, most=most)
        route = TableRoute(table=table, dispatcher=lambda _: dispatcher, clock=at, spread=at.spread)
        inbound = region.queue(at, region.inbound.put, cpu=region.aws.functions.ingest_cpu, most=most)
        breaker = self._breakers.setdefault(name, Breaker(clock=at, jitter=region.random.random))
        # No payload here is large.
        preparation = Preparation(name, table=table, payloads=cast(Payloads, None), clock=at, spread=at.spread)
        return Submit(
            JobFactory(queue, direct_horizon=_DIRECT_HORIZON, new_uid=_no_uid),
            preparation=preparation,
            table=WriteThrough(route, breaker=breaker),
            sender=Sender(queue, level=cast(Callable[[int], Any], None), inbound=inbound, clock=at, spread=at.spread),
            clock=at,
            is_buffered=self._is_buffered,
        )


class Api:
    """The functions of the API: one more, after a cold start, whenever all are busy. `answered` has every result."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._idle: list[Process] = []
        self.answered: list[Job | DuelineError] = []

    def schedule(self, jobs: Sequence[Job]) -> None:
        """Take one request with some jobs of one queue, whose ids their caller made."""
        process = self._idle.pop() if self._idle else self._begun()
        self.answered += process.submit([request_of(job) for job in jobs], queue=jobs[0].id.queue)
        self._idle.append(process)

    def _begun(self) -> Process:
        region = self._region
        region.turns.sleep(region.aws.functions.cold_start.draw(region.random))
        return Process(region, is_buffered=True)


class Producer:
    """A direct producer, which schedules many jobs in as many lanes as a client has, and as patiently."""

    def __init__(self, region: Region) -> None:
        self._region, self._process = region, Process(region, is_buffered=False)
        self.answered: list[Job | DuelineError] = []
        self.ended = 0.0

    def schedule_many(self, jobs: Sequence[Job]) -> None:
        at, queue = self._process.at, jobs[0].id.queue
        calls = Calls(patience=Patience(), clock=at, jitter=self._region.random.random)
        ask = partial(calls.ask_for_each, partial(self._process.submit, queue=queue), pace=Pace(most=_MOST_AT_ONCE))
        requests = [request_of(job) for job in jobs]
        pieces = [requests[start : start + FIRST_ITEMS] for start in range(0, len(requests), FIRST_ITEMS)]
        for results in at.with_lanes(LANES).spread(partial(ask, again=_again), pieces):
            self.answered += results
        self.ended = at.monotonic()


def request_of(job: Job) -> Request:
    return Request(id=str(job.id), text=job.payload)


def _again(request: Request, error: DuelineError) -> Request:
    return replace(request, id=error.job_id or request.id)


def _no_uid() -> str:
    return "00000000-0000-4000-8000-000000000000"
