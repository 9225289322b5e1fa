"""Lateness in real time: the deployed template in the local AWS, beside Celery, Dynein's protocol and SQS alone."""

import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.celery import KILLED_LOAD, celery_lateness
from bench.dynein import job_row
from bench.harness import Figures, Progress, Run, Target, chunks, python, running, wait_until
from bench.lateness_stage import KILLED_QUEUE, LOOKAHEAD, PERIOD, Stage, staged, ticking, warm_ticks
from bench.load import (
    EXACT,
    FLOW,
    PLAIN,
    QUEUES,
    RUSH,
    Due,
    Ledger,
    Load,
    Schedule,
    read_landed,
    send,
    wait_for,
    wait_for_the_last,
)
from bench.redis_queue import redis_program
from bench.sqs import sqs_lateness
from bench.stage import create_table
from dueline import State
from dueline.aws.dynamodb import DynamoTable
from dueline.core.job import Job
from dueline.core.ports import WRITE_ROWS
from dueline.core.tick import CHECKPOINT_JOBS

OURS, WORKER = "Dueline, plain consumer", "Dueline, its worker"
DYNEIN, CELERY = "Dynein's protocol", "Celery, ETA on Redis"
CELERY_KILLED, FLOOR = "Celery, its worker killed", "SQS alone"
MISSED, KILLED, NEVER = 2, 4, -1
_OURS, _OTHERS = Load(first=6, steady=114, rush=2000), Load(first=5, steady=25, rush=2000)
_FLOOR, _SMALL = Load(first=5, steady=8, rush=2000), Load(first=4, steady=4, rush=100)
_INGESTED_A_SECOND, _INGEST_SECONDS, _STORED_A_SECOND = 250, 4, 400
_WARMING_JOBS, _NOT_IN_THIS_RUN_SECONDS = 200, 86_400.0
# Half of the cancels are before the first tick, the others in the midst of the run.
_CANCELLED_SHARE, _CANCEL_AGAIN_AT = 0.05, 0.35
_DYNEIN_TABLE = "dynein"
_TO_A_CONSUMER = {"p95": 1.2, "p99": 1.5}


def measure(run: Run) -> Figures:
    """Measure one after the other, Dueline over a longer flow; in a quick run the others run beside it."""
    redis_program()
    ours, others = (_SMALL, _SMALL) if run.quick else (_OURS, _OTHERS)
    run.progress("synthesize and deploy")
    with staged(run.scratch) as stage:
        calls: dict[str, Callable[[], Any]] = {
            DYNEIN: partial(_dynein, stage, others, run.progress),
            CELERY: partial(celery_lateness, run.scratch / "celery", others, run.progress),
        }
        if not run.quick:
            killed = run.scratch / "celery-killed"
            calls[CELERY_KILLED] = partial(celery_lateness, killed, KILLED_LOAD, run.progress, is_killed=True)
            calls[FLOOR] = partial(_floor, stage, run.progress)
        with ThreadPoolExecutor() as pool:
            beside = {name: pool.submit(call) for name, call in calls.items()} if run.quick else {}
            figures = _dueline(stage, ours, run.progress, is_disturbed=not run.quick)
            for name, call in calls.items():
                figures["contenders"][name] = beside[name].result() if beside else call()
    return figures


def targets(figures: Figures) -> list[Target]:
    """Return what lateness is to reach, and the counts of all of Dueline's run."""
    whole, contenders = figures["all"], figures["contenders"]
    killed = figures["repeated by a killed tick"]
    return [
        *(
            Target(f"lateness {name} to a plain SQS consumer, {kind}", contenders[OURS][kind][name], bound, unit=" s")
            for kind in (FLOW, RUSH)
            for name, bound in _TO_A_CONSUMER.items()
        ),
        *(
            Target(
                f"lateness p99 in a worker, {kind}", round(contenders[WORKER][kind]["p99"] * 1000, 1), 100, unit=" ms"
            )
            for kind in (FLOW, RUSH)
        ),
        Target("jobs early", whole["early"], 0),
        Target("jobs lost", whole["lost"], 0),
        Target("jobs after a cancel that was promised", whole["after a promised cancel"], 0),
        Target("repeats that no kill explains", whole["repeated"] - killed, 0),
        Target("repeats by a killed tick", killed, CHECKPOINT_JOBS),
        Target("jobs on time within 60 s", whole["on time"] * 100, 99.999, at_most=False, unit=" %"),
    ]


def _dueline(stage: Stage, load: Load, progress: Progress, *, is_disturbed: bool) -> Figures:
    """Have jobs in the table before the first tick, as if scheduled long ago; cancel some, let all land."""
    record, dues = stage.folder / "ours", load.dues()
    missed, killed = (MISSED, KILLED) if is_disturbed else (NEVER, NEVER)
    with _consumers(stage, record):
        begin = math.ceil(time.time() + len(dues) / _INGESTED_A_SECOND + _INGEST_SECONDS)
        schedule = Schedule(begin=begin, jobs=dues)
        jobs = {due.number: schedule.job(due) for due in dues}
        progress("Dueline: schedule")
        send(list(jobs.values()), stage.queue(stage.endpoints.inbound_url))
        # Ingest itself sends what is still on its way by then.
        ingested = _wait_for_ingest(stage, until=begin)
        promises = _cancel(stage, jobs, _chosen(dues, seed=1))
        with ticking(stage, begin=begin, missed=missed, killed=killed) as kill:
            again_at = begin + load.first + load.steady * _CANCEL_AGAIN_AT
            wait_for(again_at, "Dueline", progress, schedule=schedule)
            waiting = [due for due in dues if schedule.dues[due.number] > time.time() + 1]
            promises |= _cancel(stage, jobs, _chosen(waiting, seed=2) - promises.keys())
            ledger = wait_for_the_last("Dueline", progress, schedule=schedule, record=record, but=promises)
    promised = frozenset(number for number, is_promised in promises.items() if is_promised)
    ledger = replace(ledger, cancelled=promised, maybe_cancelled=promises.keys() - promised)
    return {
        **figures_of(ledger, dues, killed=killed),
        "cancels": {"200": len(promised), "202": len(promises) - len(promised)},
        "in the table before the first tick": ingested,
        "killed at": round(kill.at and kill.at - begin, 1),
    }


def figures_of(ledger: Ledger, dues: tuple[Due, ...], *, killed: int) -> Figures:
    """Return Dueline's figures by who consumes, and how many repeats a killed tick explains."""
    queues = {OURS: PLAIN, WORKER: (EXACT,)}
    by_consumer = {name: [due for due in dues if due.queue in of] for name, of in queues.items()}
    of_killed = [due.number for due in dues if due.queue == KILLED_QUEUE and is_first_seen(due, by=killed)]
    return {
        "contenders": {name: ledger.by_kind(some) for name, some in by_consumer.items()},
        "all": ledger.summary(),
        "repeated by a killed tick": ledger.of(of_killed).repeated,
    }


def is_first_seen(due: Due, *, by: int) -> bool:
    """Tell whether a firing is the first that looks ahead to a job of the flow."""
    until = by * PERIOD + LOOKAHEAD
    return by > 0 and not due.rush and until - PERIOD < due.after <= until


def _chosen(dues: Collection[Due], *, seed: int) -> set[int]:
    chance = random.Random(seed)
    return {due.number for due in dues if chance.random() < _CANCELLED_SHARE / 2}


def _cancel(stage: Stage, jobs: Mapping[int, Job], numbers: set[int]) -> dict[int, bool]:
    """Cancel jobs over the HTTP API; return of which that was promised. A call that failed promised nothing."""
    ordered = sorted(numbers)
    states = stage.client.cancel_many([str(jobs[number].id) for number in ordered])
    return {number: state is State.CANCELLED for number, state in zip(ordered, states, strict=True)}


@contextmanager
def _consumers(stage: Stage, record: Path) -> Iterator[None]:
    """Have a process of plain consumers and one of a worker, both of which have received a first job."""
    environment, log = stage.environment(record), stage.folder / "consumers.log"
    plain = python("bench.consumers", "plain", *(stage.endpoints.queues[name] for name in PLAIN))
    worker = python("dueline", "worker", "bench.consumers:worker", "--grace", "1")
    with (
        running(plain, log=log, environment=environment),
        running(worker, log=log, environment=environment),
    ):
        now = Schedule(begin=int(time.time()), jobs=())
        for number, name in enumerate(QUEUES, start=1):
            send([now.job(Due(-number, name, 0, False))], stage.queue(stage.endpoints.queues[name]))
        later = [Due(-number, EXACT, _NOT_IN_THIS_RUN_SECONDS, False) for number in range(_WARMING_JOBS)]
        # Enough for all functions of ingest to start.
        send([now.job(due) for due in later], stage.queue(stage.endpoints.inbound_url))
        wait_until(lambda: _is_ingested(stage), what="ingest is ready")
        wait_until(lambda: len(dict(read_landed(record))) == len(QUEUES), what="consumers are ready")
        warm_ticks(stage)
        yield


def _wait_for_ingest(stage: Stage, *, until: float) -> bool:
    while time.time() < until:
        if _is_ingested(stage):
            return True
        time.sleep(0.2)
    return False


def _is_ingested(stage: Stage) -> bool:
    depth = stage.queue(stage.endpoints.inbound_url).depth()
    return not (depth.waiting or depth.in_flight)


def _dynein(stage: Stage, load: Load, progress: Progress) -> Any:
    """Put a load into Dynein's table, and let its poller send it to the same plain consumers."""
    dynamodb, sqs = stage.emulator.client("dynamodb"), stage.emulator.client("sqs")
    create_table(dynamodb, _DYNEIN_TABLE)
    urls = {name: sqs.create_queue(QueueName=f"dynein-{name}")["QueueUrl"] for name in QUEUES}
    record, log, dues = stage.folder / "dynein", stage.folder / "dynein.log", load.dues()
    schedule = Schedule(begin=math.ceil(time.time() + len(dues) / _STORED_A_SECOND + 2), jobs=dues)
    # 25 rows a request: how they came into the table is not what is measured.
    table, rows = (
        DynamoTable(dynamodb, _DYNEIN_TABLE, state=_DYNEIN_TABLE),
        [job_row(schedule.job(due)) for due in dues],
    )
    with ThreadPoolExecutor(4) as pool:
        if any(pool.map(table.write, chunks(rows, WRITE_ROWS))):
            raise RuntimeError("rows were left unwritten")
    of_queues = [f"{name}={url}" for name, url in urls.items()]
    commands = ("plain", *urls.values()), ("dynein", _DYNEIN_TABLE, *of_queues)
    with ExitStack() as stack:
        for command in commands:
            stack.enter_context(
                running(python("bench.consumers", *command), log=log, environment=stage.environment(record))
            )
        return wait_for_the_last("Dynein", progress, schedule=schedule, record=record).by_kind(dues)


def _floor(stage: Stage, progress: Progress) -> Any:
    record = stage.folder / "floor"
    sqs, environment = stage.emulator.client("sqs"), stage.environment(record)
    return sqs_lateness(sqs, _FLOOR, progress, record=record, environment=environment)
