"""Count every step of a job's way, ours and Dynein's, as its code takes it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from statistics import median
from typing import Any

from bench.cost.lambdas import Invoked, of_schedule
from bench.cost.payloads import PACKED, QUEUE, SIZES, USUAL, Size, a_job, json_of
from bench.cost.plan import BATCHED, CODED, HIGH, HTTP_CALL_JOBS, Batch, Plan, named
from bench.cost.stage import Stage
from bench.cost.step import Step, step_of
from bench.dynein import Dynein, cut, job_row
from bench.lambdas import inbound_event
from dueline import NewJob
from dueline.model import rows
from dueline.model.job import Job, Partition, Route
from dueline.model.message import BATCH_MESSAGES
from dueline.ports import WRITE_ROWS

SOON, LATER = timedelta(seconds=60), timedelta(days=1)
# Beyond the fence when a row is written, and below that of the tick that follows.
_WITHIN_A_LOOKAHEAD = timedelta(seconds=200)


class Counting:
    """Counts on a stage. A step is taken so many times as the plan says: its requests are the same each time."""

    def __init__(self, stage: Stage, plan: Plan) -> None:
        self._stage, self._plan = stage, plan
        self._numbers = count(1)
        self._found: set[Partition] = set()

    def steps(self) -> Iterator[tuple[str, Callable[[], Step]]]:
        """Yield each step by its name, and what counts it once."""
        for size in SIZES:
            yield from self._submissions(size)
            yield from self._on_the_way(size)
            for batched in (False, True):
                yield from self._dynein(size, batched=batched)
        for size in PACKED:
            yield from self._on_the_way(size)
        yield named("keyed", Route.TABLE, 1, USUAL), partial(self._over_http, USUAL, Route.TABLE, 1, keyed=True)
        many = named("keyed", Route.TABLE, HTTP_CALL_JOBS, USUAL)
        yield many, partial(self._over_http, USUAL, Route.TABLE, HTTP_CALL_JOBS, keyed=True)
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
            for jobs in (1, BATCH_MESSAGES):
                yield named("library", route, jobs, size), partial(self._from_the_library, size, route, jobs)
            for jobs in (1, HTTP_CALL_JOBS):
                yield named("http", route, jobs, size), partial(self._over_http, size, route, jobs, keyed=False)

    def _on_the_way(self, size: Size) -> Iterator[tuple[str, Callable[[], Step]]]:
        """Yield ingest and tick in all shapes for the usual size, for others in those of a high rate."""
        plan = self._plan if size is USUAL else self._plan.at(HIGH)
        for batch in plan.ingests:
            yield named("ingest", batch.jobs, batch.partitions, size), partial(self._ingest, size, batch)
        for jobs in plan.ticks:
            yield named("tick", jobs, size), partial(self._tick, size, jobs)

    def _from_the_library(self, size: Size, route: Route, jobs: int) -> Step:
        delay = SOON if route is Route.DIRECT else LATER
        asked = [NewJob(payload=payload, delay=delay) for payload in self._payloads(size, jobs)]
        self._stage.client.queues()
        with self._stage.meter.counting() as exchanges:
            answers = self._stage.client.schedule_many(QUEUE, asked)
        _check(all(getattr(each, "route", None) is route for each in answers), answers)
        return step_of([each for each in exchanges if each.service != "ssm"], jobs=jobs)

    def _over_http(self, size: Size, route: Route, jobs: int, *, keyed: bool) -> Step:
        delay = (SOON if route is Route.DIRECT else LATER).total_seconds()
        asked: list[dict[str, Any]] = [{"payload": each, "delay": delay} for each in self._payloads(size, jobs)]
        if keyed:
            asked = [{**each, "key": f"{next(self._numbers):032d}"} for each in asked]
        return self._invoked("api", of_schedule(QUEUE, asked), jobs=jobs, is_right=_is_scheduled)

    def _ingest(self, size: Size, batch: Batch) -> Step:
        partitions = [Partition(queue=QUEUE, number=number) for number in range(batch.partitions)]
        self._have_found([each for each in partitions if each not in self._found])
        return self._ingested(self._jobs(size, batch.jobs, partitions, due=datetime.now(UTC) + LATER))

    def _have_found(self, partitions: Sequence[Partition]) -> None:
        """Have ingest find, once in its life, that these partitions have ticks."""
        if partitions:
            self._ingested(self._jobs(USUAL, len(partitions), partitions, due=datetime.now(UTC) + LATER))
            self._found.update(partitions)

    def _ingested(self, jobs: Sequence[Job]) -> Step:
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

    def _payloads(self, size: Size, jobs: int) -> list[dict[str, str]]:
        return [size.payload(next(self._numbers)) for _ in range(jobs)]

    def _jobs(self, size: Size, jobs: int, partitions: Sequence[Partition], *, due: datetime) -> list[Job]:
        due = due.replace(microsecond=0)
        return [
            a_job(json_of(payload), partition=partitions[at % len(partitions)], due=due, number=next(self._numbers))
            for at, payload in enumerate(self._payloads(size, jobs))
        ]


_NONE_FAILED: dict[str, Any] = {"batchItemFailures": []}


def _is_scheduled(answer: Any) -> bool:
    return answer["statusCode"] in (200, 201) and "error" not in answer["body"]


def _check(is_right: bool, told: object) -> None:
    if not is_right:
        raise RuntimeError(f"a step went wrong, so its figures would be: {str(told)[:500]}")
