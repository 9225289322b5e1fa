"""Count every step of a job's way, ours and Dynein's, as its code takes it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from statistics import median
from typing import Any
from uuid import UUID

from bench.cost.lambdas import Invoked, of_schedule
from bench.cost.payloads import JSON, QUEUE, SIZES, USUAL, Size, a_job, json_of
from bench.cost.plan import BATCHED, CALL_JOBS, CODED, HIGH, Batch, Load, Plan, named
from bench.cost.stage import Stage
from bench.cost.step import Step, step_of
from bench.dynein import Dynein, cut, job_row
from bench.lambdas import inbound_event
from dueline import NewJob
from dueline.model import rows
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.message import BATCH_MESSAGES
from dueline.ports import WRITE_ROWS

LATER = timedelta(days=1)
_DELAYS = {Route.DIRECT: timedelta(seconds=60), Route.TABLE: LATER}
# What jobs of a route have besides their payload, by their numbers.
AskedWith = Callable[[Route, Sequence[int]], list[dict[str, Any]]]
# Beyond the fence when a row is written, and below that of the tick that follows.
_WITHIN_A_LOOKAHEAD = timedelta(seconds=200)


class Counting:
    """Counts on a stage. A step is taken so many times as the plan says: its requests are the same each time.

    `together` is how many jobs a request carries where callers linger.
    """

    def __init__(self, stage: Stage, plan: Plan, *, together: int) -> None:
        self._stage, self._plan, self._together = stage, plan, together
        self._numbers = count(1)

    def steps(self) -> Iterator[tuple[str, Callable[[], Step]]]:
        """Yield each step by its name, and what counts it once."""
        for size in SIZES:
            yield from self._submissions(size)
            yield from self._ticks(size)
            for batched in (False, True):
                yield from self._dynein(size, batched=batched)
        yield from self._ticks(JSON)
        tens = partial(self._from_a_direct_client, JSON, Route.TABLE, BATCH_MESSAGES)
        yield named("direct", Route.TABLE, BATCH_MESSAGES, JSON), tens
        for jobs in (1, CALL_JOBS):
            yield named("keyed", Route.TABLE, jobs, USUAL), partial(self._over_http, USUAL, Route.TABLE, jobs, _keyed)
        lingering = partial(self._over_http, USUAL, Route.TABLE, self._together, _with_ids)
        yield named("http", Route.TABLE, self._together, USUAL), lingering
        yield named("buffered", Route.TABLE, 1, USUAL), self._over_http_while_the_table_throttles
        batch = Load(rate=HIGH).ingested
        yield named("ingest", batch.jobs, batch.partitions, USUAL), partial(self._ingest, USUAL, batch)
        yield named("tick", 0, USUAL), partial(self._tick, USUAL, 0)

    def counted(self, once: Callable[[], Step]) -> Step:
        """Count a step so many times; return it with the median of its CPU time. Raises RuntimeError if it varies."""
        taken = [once() for _ in range(self._plan.rounds)]
        told = {(each.writes, each.reads, each.sent, tuple(sorted(each.calls.items()))) for each in taken}
        if len(told) > 1:
            raise RuntimeError(f"a step is not the same each time: {told}")
        return replace(taken[-1], cpu_seconds=median(each.cpu_seconds for each in taken))

    def _submissions(self, size: Size) -> Iterator[tuple[str, Callable[[], Step]]]:
        for route in Route:
            for jobs in (1, BATCH_MESSAGES, CALL_JOBS):
                yield named("direct", route, jobs, size), partial(self._from_a_direct_client, size, route, jobs)
            for jobs in (1, CALL_JOBS):
                yield named("http", route, jobs, size), partial(self._over_http, size, route, jobs, _with_ids)

    def _ticks(self, size: Size) -> Iterator[tuple[str, Callable[[], Step]]]:
        """Yield the tick in all shapes for the usual size, for others in that of a high rate."""
        plan = self._plan if size is USUAL else self._plan.at(HIGH)
        for jobs in plan.ticks:
            yield named("tick", jobs, size), partial(self._tick, size, jobs)

    def _from_a_direct_client(self, size: Size, route: Route, jobs: int) -> Step:
        asked = [NewJob(payload=payload, delay=_DELAYS[route]) for payload in self._payloads(size, jobs)]
        self._stage.client.queues()
        with self._stage.meter.counting() as exchanges:
            answers = self._stage.client.schedule_many(QUEUE, asked)
        _check(all(getattr(each, "route", None) is route for each in answers), answers)
        return step_of([each for each in exchanges if each.service != "ssm"], jobs=jobs)

    def _over_http(self, size: Size, route: Route, jobs: int, asked_with: "AskedWith") -> Step:
        given = asked_with(route, [next(self._numbers) for _ in range(jobs)])
        asked = [{"payload": payload, **each} for payload, each in zip(self._payloads(size, jobs), given, strict=True)]
        return self._invoked("api", of_schedule(QUEUE, asked), jobs=jobs, is_right=_is_scheduled)

    def _over_http_while_the_table_throttles(self) -> Step:
        with self._stage.lambdas.throttled(QUEUE):
            step = self._over_http(USUAL, Route.TABLE, 1, _with_ids)
        _check("SendMessageBatch" in step.calls, step)
        return step

    def _ingest(self, size: Size, batch: Batch) -> Step:
        partitions = [Partition(queue=QUEUE, number=number) for number in range(batch.partitions)]
        jobs = self._jobs(size, batch.jobs, partitions, due=datetime.now(UTC) + LATER)
        return self._invoked(
            "ingest", inbound_event(jobs), jobs=len(jobs), is_right=lambda answer: answer == _NONE_FAILED
        )

    def _tick(self, size: Size, jobs: int) -> Step:
        partition = self._stage.partition()
        due = datetime.now(UTC) + _WITHIN_A_LOOKAHEAD
        for some in cut(self._jobs(size, jobs, [partition], due=due), WRITE_ROWS):
            self._stage.table.write([rows.job_row(job) for job in some])
        event = {"queue": partition.queue, "partition": partition.number}
        step = self._invoked("tick", event, jobs=jobs, is_right=lambda answer: answer is None)
        _check(step.items.get("SendMessageBatch", 0) == jobs, step)
        return step

    def _dynein(self, size: Size, *, batched: bool) -> Iterator[tuple[str, Callable[[], Step]]]:
        plan = self._plan if size is USUAL else self._plan.at(HIGH)
        which, dynein = BATCHED if batched else CODED, self._stage.dynein(batched=batched)
        yield named(which, "in", size), partial(self._dynein_takes_in, dynein, size)
        for jobs in plan.polls:
            yield named(which, "out", jobs, size), partial(self._dynein_hands_over, dynein, size, jobs)

    def _dynein_takes_in(self, dynein: Dynein, size: Size) -> Step:
        partition = Partition(queue=QUEUE, number=0)
        jobs = self._jobs(size, BATCH_MESSAGES, [partition], due=datetime.now(UTC) + LATER)
        with self._stage.meter.counting() as exchanges:
            dynein.submit(jobs)
            taken = 0
            while taken < len(jobs):
                taken += dynein.ingest()
        return step_of(exchanges, jobs=len(jobs))

    def _dynein_hands_over(self, dynein: Dynein, size: Size, jobs: int) -> Step:
        partition = Partition(queue=QUEUE, number=1)
        dynein.store(self._dynein_rows(size, jobs, partition))
        with self._stage.meter.counting() as exchanges:
            done, _ = dynein.poll(partition)
        _check(done == jobs, done)
        return step_of(exchanges, jobs=jobs)

    def _dynein_rows(self, size: Size, jobs: int, partition: Partition) -> list[rows.Row]:
        overdue = self._jobs(size, jobs, [partition], due=datetime.now(UTC) - timedelta(seconds=1))
        return [job_row(job) for job in overdue]

    def _invoked(self, name: str, event: Mapping[str, Any], *, jobs: int, is_right: Callable[[Any], bool]) -> Step:
        with self._stage.meter.counting() as exchanges:
            invoked: Invoked = self._stage.lambdas.invoke(name, event)
        _check(is_right(invoked.answer), invoked.answer)
        return step_of(exchanges, jobs=jobs, log=invoked.log, cpu_seconds=invoked.cpu_seconds)

    def _payloads(self, size: Size, jobs: int) -> list[dict[str, Any]]:
        return [size.payload(next(self._numbers)) for _ in range(jobs)]

    def _jobs(self, size: Size, jobs: int, partitions: Sequence[Partition], *, due: datetime) -> list[Job]:
        due = due.replace(microsecond=0)
        return [
            a_job(json_of(payload), partition=partitions[at % len(partitions)], due=due, number=next(self._numbers))
            for at, payload in enumerate(self._payloads(size, jobs))
        ]


_NONE_FAILED: dict[str, Any] = {"batchItemFailures": []}


def _with_ids(route: Route, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """As the library sends jobs: it has made their ids, and those of one call share a partition."""
    partition, due = Partition(queue=QUEUE, number=0), (datetime.now(UTC) + _DELAYS[route]).replace(microsecond=0)
    uids = [str(UUID(int=number, version=4)) for number in numbers]
    return [{"id": str(JobId(partition=partition, route=route, due=due, uid=uid))} for uid in uids]


def _keyed(route: Route, numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [{"delay": _DELAYS[route].total_seconds(), "key": f"{number:032d}"} for number in numbers]


def _is_scheduled(answer: Any) -> bool:
    return answer["statusCode"] in (200, 201) and "error" not in answer["body"]


def _check(is_right: bool, told: object) -> None:
    if not is_right:
        raise RuntimeError(f"a step went wrong, so its figures would be: {str(told)[:500]}")
