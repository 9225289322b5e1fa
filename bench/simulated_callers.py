"""Callers in simulated time: the functions of the HTTP API, and direct producers, with real retries."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, cast

from bench.simulation import QueuePort, Region
from dueline.core.job import Job, State
from dueline.core.ports import Payloads
from dueline.core.queue_settings import QueueSettings
from dueline.core.request import Request
from dueline.core.retry import CALL_ITEMS, LANES, BatchSize, Calls, Patience
from dueline.core.submit import Breaker, JobFactory, Preparation, Sender, Submit, SubmitResult, WriteThrough
from dueline.core.table_writer import TableWriter
from dueline.errors import DuelineError
from tests.builders import RETENTION

Results = Sequence[SubmitResult | DuelineError]
_DIRECT_HORIZON = timedelta(seconds=890)


class Submitter:
    """A process that submits, with breakers of its own: a function of the API, which `is_buffered`, or a producer."""

    def __init__(self, region: Region, *, is_buffered: bool) -> None:
        self._region, self._is_buffered = region, is_buffered
        self.at = region.environment()
        self._breakers: dict[str, Breaker] = {}

    def submit(self, requests: Sequence[Request], *, queue: str) -> Results:
        """Submit jobs as the API's function does; note which are in the table, or sent."""
        self.at.compute(self._region.aws.api_cpu)
        until = self.at.monotonic() + self._region.aws.api_sends_for
        results = self._submit(queue).run(requests, until=until)
        for each in results:
            if isinstance(each, SubmitResult) and not is_in_buffer(each):
                self._region.note_written(str(each.job.id))
        return results

    def _submit(self, name: str) -> Submit:
        region, at, most = self._region, self.at, self._region.aws.api_longest_request
        queue, table = QueueSettings(name=name, partitions=1, retention=RETENTION), region.table(at, most=most)
        dispatcher = region.dispatcher(at, table, most=most)
        route = TableWriter(table=table, dispatcher=lambda _: dispatcher, clock=at, spread=at.spread)
        inbound = QueuePort(region=region, arrive=region.inbound.put, at=at, cpu=region.aws.ingest_cpu, most=most)
        breaker = self._breakers.setdefault(name, Breaker(clock=at, jitter=region.random.random))
        # No payload here is large, and all ids are made already.
        preparation = Preparation(name, table=table, payloads=cast(Payloads, None), clock=at, spread=at.spread)
        return Submit(
            JobFactory(queue, direct_horizon=_DIRECT_HORIZON, new_uid=lambda: ""),
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
        self._idle: list[Submitter] = []
        self.answered: list[SubmitResult | DuelineError] = []

    def schedule(self, jobs: Sequence[Job]) -> None:
        """Take one request with some jobs of one queue, whose ids their caller made."""
        submitter = self._idle.pop() if self._idle else self._new()
        self.answered += submitter.submit(list(map(_request, jobs)), queue=jobs[0].id.queue)
        self._idle.append(submitter)

    def _new(self) -> Submitter:
        self._region.time.sleep(self._region.aws.cold_start.draw(self._region.random))
        return Submitter(self._region, is_buffered=True)


class Producer:
    """A direct producer, which schedules many jobs in as many lanes as a client has, and as patiently."""

    def __init__(self, region: Region) -> None:
        self._jitter, self._submitter = region.random.random, Submitter(region, is_buffered=False)
        self.answered: list[SubmitResult | DuelineError] = []
        self.ended = 0.0

    def schedule_many(self, jobs: Sequence[Job]) -> None:
        at, submit = self._submitter.at, partial(self._submitter.submit, queue=jobs[0].id.queue)
        calls = Calls(patience=Patience(), clock=at, jitter=self._jitter)
        schedule = partial(calls.run_each, submit, size=BatchSize())
        pieces = [jobs[start : start + CALL_ITEMS] for start in range(0, len(jobs), CALL_ITEMS)]
        for results in at.spread(schedule, [list(map(_request, piece)) for piece in pieces], lanes=LANES):
            self.answered += results
        self.ended = at.monotonic()


def is_in_buffer(result: SubmitResult | DuelineError) -> bool:
    return isinstance(result, SubmitResult) and result.state is State.ACCEPTED


def _request(job: Job) -> Request:
    return Request(id=str(job.id), text=job.payload)
