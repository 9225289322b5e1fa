"""Cost of a million jobs: every request counted, in a process of its own, and billed by a list of prices."""

import io
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, product
from math import ceil
from pathlib import Path
from random import Random
from statistics import median
from typing import Any
from uuid import UUID, uuid4

from bench import bill
from bench.bill import Biller, Costs, Load, deployed, named
from bench.counted import Step, step_of
from bench.dynein import Dynein, job_row
from bench.harness import Figures, Target, emulated_aws, expect, print_result, run_apart
from bench.payloads import QUEUE, SIZES, USUAL, Size, cancellation_bytes, json_of, largest_row_bytes, table_job
from bench.stage import Stage, inbound_event, request_event, schedule_event
from dueline import NewJob
from dueline.core import rows
from dueline.core.job import JobId, Partition, Route, State, StoredJob
from dueline.core.message import BATCH_MESSAGES
from dueline.core.tick import SWEPT_JOBS

LATER = timedelta(days=1)
_DELAYS = {Route.DIRECT: timedelta(seconds=60), Route.TABLE: LATER}
# Beyond the fence when a row is written, and below that of the tick that follows.
_WITHIN_A_LOOKAHEAD, _A_MINUTE = timedelta(seconds=140), 60.0
_MOVES = "--moves"
# The API's function by the queue's alias, and by the gateway's.
_FUNCTIONS = {"invoked": f"api:q-{QUEUE}", "http": "api"}
# The most that a million jobs of 1 KB may cost that are due in a day, and what a call may.
_DOLLARS = {bill.INVOKE_ONE_BY_ONE: 1.22, bill.DIRECT_ONE_BY_ONE: 0.84, bill.DIRECT_IN_TENS: 0.84} | {
    bill.HTTP_ONE_BY_ONE: 2.28
}
_ONE_WRITE: dict[str, float] = {"requests": 1, "write units": 1, "read units": 0}
_CALLS = dict.fromkeys(bill.CALLS, _ONE_WRITE) | {"direct cancel": {**_ONE_WRITE, "$ a million": 0.64}}
_NONE_FAILED: dict[str, Any] = {"batchItemFailures": []}

# The steps whose CPU time is compared, and how often they are counted. Dynein's submit is until its row is there, as
# ours is.
CPU_ROUNDS = 11
CPU_STEPS = {
    ("submit", "Dueline"): named("direct", Route.TABLE, bill.CALL_JOBS, USUAL),
    ("submit", "Dynein"): named(bill.DYNEIN, "in", USUAL),
    ("submit", "Dynein batched"): named(bill.DYNEIN_BATCHED, "in", USUAL),
    ("ingest", "Dueline"): named("ingest", Load(bill.HIGH).ingested, Load(bill.HIGH).partitions, USUAL),
    ("tick", "Dueline"): named("tick", bill.MOST_TICKED, USUAL),
    ("tick", "Dynein"): named(bill.DYNEIN, "out", Load(bill.HIGH).polled, USUAL),
    ("tick", "Dynein batched"): named(bill.DYNEIN_BATCHED, "out", Load(bill.HIGH).polled, USUAL),
}

Once = Callable[[], Step]


def measure(scratch: Path) -> Figures:
    """Count every step, read what is deployed, and bill it."""
    with emulated_aws(scratch) as environment:
        counted = run_apart("bench.cost", log=scratch / "counting.log", environment=environment)
        # The emulator's own DynamoDB: dynalite has no transactions.
        of_emulator = {name: value for name, value in environment.items() if name != "AWS_ENDPOINT_URL_DYNAMODB"}
        counted |= run_apart("bench.cost", _MOVES, log=scratch / "moves.log", environment=of_emulator)
    costs = Costs(
        steps={name: Step(**step) for name, step in counted.items()},
        biller=Biller(deployed=deployed(scratch)),
        row_bytes={
            **{size.name: largest_row_bytes(json_of(size.payload(1))) for size in SIZES},
            bill.CANCEL: cancellation_bytes(),
        },
    )
    return bill.figures(costs) | {"cpu": cpu(costs.steps)}


def targets(figures: Figures) -> list[Target]:
    prices, scheduler = figures["by_rate"][str(bill.HIGH)], figures["by_wait"]["1"][bill.SCHEDULER]
    others = {bill.CODED: (prices[bill.CODED], 0.40), bill.BATCHED: (prices[bill.BATCHED], 0.50)}
    others[bill.SCHEDULER] = (scheduler, 0.75)
    ours, jobs, units = prices[bill.OURS], figures["cpu"]["jobs_a_second"], figures["write_units"]
    of_job, of_move = units["a job"], units["a move"]
    return [
        Target("write units of a job", of_job["by id"], 1),
        Target("write units of a move", of_move["by id"], 8),
        Target("write units of a key, of a job", of_job["by key"] - of_job["by id"], 2),
        Target("write units of a key, of a move", of_move["by key"] - of_move["by id"], 2),
        *(Target(f"cost in tens, of {who}", ours / price, most) for who, (price, most) in others.items()),
        *(Target(f"$ a million: {way}", figures["by_way"][way][USUAL.name], most) for way, most in _DOLLARS.items()),
        *(
            Target(f"{what}, {call}", figures["calls"][call][what], most)
            for call, bounds in _CALLS.items()
            for what, most in bounds.items()
        ),
        *(
            Target(f"CPU: {step}, jobs a CPU second", jobs[step]["Dueline"], 10_000, at_most=False)
            for step in ("tick", "ingest")
        ),
    ]


def cpu(steps: Mapping[str, Step]) -> Figures:
    """Return how many jobs each step takes in a second of CPU time, and Dueline's to the others'."""
    speeds = defaultdict[str, dict[str, float]](dict)
    for (step, who), name in CPU_STEPS.items():
        speeds[step][who] = steps[name].jobs / steps[name].cpu_seconds
    against = {
        step: {who: by["Dueline"] / each for who, each in by.items() if who != "Dueline"} for step, by in speeds.items()
    }
    whole = {step: {who: round(each) for who, each in by.items()} for step, by in speeds.items()}
    return {"jobs_a_second": whole, "against": against, "rounds": CPU_ROUNDS}


class Counting:
    """Counts on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._numbers = stage, count(1)

    def steps(self) -> Iterator[tuple[str, Once]]:
        """Yield each step by its name, and what counts it once: of all rates for the usual size, else of a high one."""
        for size in SIZES:
            loads = [Load(rate) for rate in (bill.RATES if size is USUAL else (bill.HIGH,))]
            for route, jobs in product(Route, (1, BATCH_MESSAGES, bill.CALL_JOBS)):
                yield named("direct", route, jobs, size), partial(self.direct, size, route, jobs)
            for by, jobs in product(_FUNCTIONS, (1, BATCH_MESSAGES, bill.CALL_JOBS)):
                yield named(by, Route.TABLE, jobs, size), partial(self._api, size, Route.TABLE, jobs, by=by)
            yield named("invoked", Route.DIRECT, 1, size), partial(self._api, size, Route.DIRECT, 1)
            for jobs in dict.fromkeys(min(bill.MOST_TICKED, load.ticked) for load in loads):
                yield named("tick", jobs, size), partial(self.tick, size, jobs)
            for which in (bill.DYNEIN, bill.DYNEIN_BATCHED):
                dynein = self._stage.dynein(batched=which == bill.DYNEIN_BATCHED)
                yield named(which, "in", size), partial(self.dynein_ingest, dynein, size)
                for jobs in dict.fromkeys(load.polled for load in loads):
                    yield named(which, "out", jobs, size), partial(self.dynein_poll, dynein, size, jobs)
        yield named(bill.CANCEL, "direct"), self.cancel
        yield named(bill.CANCEL, "invoked"), self._cancel_invoked
        yield named("keyed", Route.TABLE, 1, USUAL), partial(self._api, USUAL, Route.TABLE, 1, with_=_keys)
        yield named("buffered", Route.TABLE, 1, USUAL), self._api_while_the_table_throttles
        jobs, partitions = Load(bill.HIGH).ingested, Load(bill.HIGH).partitions
        yield named("ingest", jobs, partitions, USUAL), partial(self.ingest, jobs, partitions)
        yield named("tick", 0, USUAL), partial(self.tick, USUAL, 0)

    def direct(self, size: Size, route: Route, jobs: int) -> Step:
        new = [NewJob(payload=payload, delay=_DELAYS[route]) for payload in self._payloads(size, jobs)]
        self._stage.client.queues()
        return self._counted(
            lambda: self._stage.client.schedule_many(QUEUE, new),
            jobs=jobs,
            is_right=lambda answers: all(getattr(each, "route", None) is route for each in answers),
        )

    def cancel(self) -> Step:
        client, id = self._stage.client, self._scheduled_id()
        return self._counted(lambda: client.cancel(id), jobs=1, is_right=lambda state: state is State.CANCELLED)

    def _cancel_invoked(self) -> Step:
        event = request_event("DELETE", f"/queues/{QUEUE}/jobs/{self._scheduled_id()}")
        return self._invoked(_FUNCTIONS["invoked"], event, jobs=1, is_right=lambda answer: answer["statusCode"] == 200)

    def _scheduled_id(self) -> str:
        [payload] = self._payloads(USUAL, 1)
        return self._stage.client.schedule(QUEUE, payload, delay=LATER).id

    def _api(self, size: Size, route: Route, jobs: int, *, with_: Any = None, by: str = "invoked") -> Step:
        others = (with_ or _ids)(route, [next(self._numbers) for _ in range(jobs)])
        new = [{"payload": payload, **other} for payload, other in zip(self._payloads(size, jobs), others, strict=True)]
        return self._invoked(_FUNCTIONS[by], schedule_event(QUEUE, new), jobs=jobs, is_right=_is_scheduled)

    def moves(self) -> Iterator[tuple[str, Step]]:
        """Yield the steps that are transactions, which need another engine than dynalite."""
        for which, with_ in ((bill.MOVED, _ids), (bill.MOVED_BY_KEY, _keys)):
            yield named(which, Route.TABLE, 1, USUAL), self._move(with_)

    def _move(self, with_: Any) -> Step:
        """Count the move of a job by its key, if it has one, else by its id."""
        [new] = with_(Route.TABLE, [next(self._numbers)])
        [payload] = self._payloads(USUAL, 1)
        answer, _, _ = self._stage.lambdas.invoke("api", schedule_event(QUEUE, [{"payload": payload, **new}]))
        expect(_is_scheduled(answer), answer)
        of_id, query = (f"/{new['id']}", {}) if "id" in new else ("", {"key": new["key"]})
        body, headers = {"delay": 2 * LATER.total_seconds()}, {"idempotency-key": str(uuid4())}
        event = request_event("PATCH", f"/queues/{QUEUE}/jobs{of_id}", body, headers=headers, query=query)
        return self._invoked("api", event, jobs=1, is_right=_is_scheduled)

    def _api_while_the_table_throttles(self) -> Step:
        with self._stage.lambdas.throttled(QUEUE):
            step = self._api(USUAL, Route.TABLE, 1)
        expect("SendMessageBatch" in step.calls, step)
        return step

    def ingest(self, count: int, partitions: int) -> Step:
        of = [Partition(queue=QUEUE, number=number) for number in range(partitions)]
        jobs = self._jobs(USUAL, count, of, due=datetime.now(UTC) + LATER)
        return self._invoked("ingest", inbound_event(jobs), jobs=count, is_right=lambda answer: answer == _NONE_FAILED)

    def tick(self, size: Size, jobs: int) -> Step:
        partition, due = self._stage.partition(), datetime.now(UTC) + _WITHIN_A_LOOKAHEAD
        self._stage.put(rows.job_row(job) for job in self._jobs(size, jobs, [partition], due=due, within=_A_MINUTE))
        event = {"queue": partition.queue, "partition": partition.number}
        step = self._invoked("tick", event, jobs=jobs, is_right=lambda answer: answer is None)
        expect(step.items.get("SendMessageBatch", 0) == jobs, step)
        return step

    def dynein_ingest(self, dynein: Dynein, size: Size) -> Step:
        partition, due = Partition(queue=QUEUE, number=0), datetime.now(UTC) + LATER
        jobs = self._jobs(size, BATCH_MESSAGES, [partition], due=due)

        def ingest() -> int:
            dynein.submit(jobs)
            ingested = 0
            while ingested < len(jobs):
                ingested += dynein.ingest()
            return ingested

        return self._counted(ingest, jobs=len(jobs), is_right=lambda ingested: ingested == len(jobs))

    def dynein_poll(self, dynein: Dynein, size: Size, jobs: int) -> Step:
        partition, due = Partition(queue=QUEUE, number=1), datetime.now(UTC) - timedelta(seconds=1)
        dynein.store([job_row(job) for job in self._jobs(size, jobs, [partition], due=due)])
        return self._counted(lambda: dynein.poll(partition)[0], jobs=jobs, is_right=lambda sent: sent == jobs)

    def _counted(self, call: Callable[[], Any], *, jobs: int, is_right: Callable[[Any], bool]) -> Step:
        with self._stage.meter.counting() as exchanges:
            start = time.process_time()
            answer = call()
            cpu_seconds = time.process_time() - start
        expect(is_right(answer), answer)
        return step_of([each for each in exchanges if each.service != "ssm"], jobs=jobs, cpu_seconds=cpu_seconds)

    def _invoked(self, name: str, event: Mapping[str, Any], *, jobs: int, is_right: Callable[[Any], bool]) -> Step:
        with self._stage.meter.counting() as exchanges:
            answer, log, cpu_seconds = self._stage.lambdas.invoke(name, event)
        expect(is_right(answer), answer)
        return step_of(exchanges, jobs=jobs, log=log, cpu_seconds=cpu_seconds)

    def _payloads(self, size: Size, jobs: int) -> list[dict[str, Any]]:
        return [size.payload(next(self._numbers)) for _ in range(jobs)]

    def _jobs(
        self, size: Size, jobs: int, partitions: Sequence[Partition], *, due: datetime, within: float = 0.0
    ) -> list[StoredJob]:
        due, of, chance = due.replace(microsecond=0), partitions, Random(jobs)
        dues = [due + timedelta(milliseconds=int(within * 1000 * chance.random())) for _ in range(jobs)]
        return [
            table_job(json_of(payload), partition=of[at % len(of)], due=dues[at], number=next(self._numbers))
            for at, payload in enumerate(self._payloads(size, jobs))
        ]


def _ids(route: Route, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """As the library sends jobs: it has made their ids, and those of one call share a partition."""
    partition, due = Partition(queue=QUEUE, number=0), (datetime.now(UTC) + _DELAYS[route]).replace(microsecond=0)
    uids = [str(UUID(int=number, version=4)) for number in numbers]
    return [{"id": str(JobId(partition=partition, route=route, due=due, uid=uid))} for uid in uids]


def _keys(route: Route, numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [{"delay": _DELAYS[route].total_seconds(), "key": f"{number:032d}"} for number in numbers]


def _is_scheduled(answer: Any) -> bool:
    return answer["statusCode"] in (200, 201) and "error" not in answer["body"]


def _counted(once: Once, *, rounds: int) -> Step:
    """Count a step so many times; return the median one, with the median of CPU time. Raises RuntimeError if it varies.

    That of a tick may: each page of rows is rounded up to a unit, and a sweep has up to two requests more by the
    fraction of the second at which it begins.
    """
    steps = sorted((once() for _ in range(rounds)), key=lambda each: each.sent)
    kinds, reads = {(each.writes, tuple(sorted(each.calls))) for each in steps}, [each.reads for each in steps]
    pages, more = steps[0].calls.get("Query", 0), steps[-1].sent - steps[0].sent
    sweeps = ceil(steps[0].jobs / SWEPT_JOBS) if pages else 0
    expect(len(kinds) == 1 and max(reads) - min(reads) <= pages and more <= 2 * sweeps, steps)
    return replace(steps[len(steps) // 2], cpu_seconds=median(each.cpu_seconds for each in steps))


def count_moves() -> None:
    sys.stdout = out = io.StringIO()
    print_result({name: asdict(step) for name, step in Counting(Stage(out)).moves()})


def main() -> None:
    """Count in this process: its CPU time and its output are the functions' alone."""
    sys.stdout = out = io.StringIO()
    # From here on, all threads are on one processor: a function of 512 MB has 0.29 of one.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    steps = dict(Counting(Stage(out)).steps())
    # One step of each kind first, for what a process does only once.
    for once in {name.partition("|")[0]: once for name, once in steps.items()}.values():
        once()
    counted = {}
    for name, once in steps.items():
        rounds = CPU_ROUNDS if name in CPU_STEPS.values() else 2
        counted[name] = asdict(_counted(once, rounds=rounds))
    print_result(counted)


if __name__ == "__main__":
    if _MOVES in sys.argv:
        count_moves()
    else:
        main()
