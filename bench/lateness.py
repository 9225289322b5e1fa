"""Lateness in real time: the deployed template in the local AWS, beside Celery, Dynein's protocol and SQS alone."""

import itertools
import json
import math
import random
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml

from bench.consumers import BROKER, LAND, celery_at
from bench.dynein import job_row
from bench.harness import Figures, Target, aws_environment, chunks, expect, python, running
from bench.load import (
    EXACT,
    FLOW,
    PLAIN,
    QUEUES,
    RECORD,
    RUSH,
    Due,
    Ledger,
    Load,
    Schedule,
    read_landed,
    send,
    sleep_until,
    wait_for_the_last,
)
from bench.redis_queue import redis_program, redis_server
from bench.stage import create_table
from dueline import Client, State
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.sqs import SqsQueue
from dueline.config.deployment import Deployment, load
from dueline.core.job import StoredJob
from dueline.core.message import BATCH_MESSAGES, Message
from dueline.core.ports import WRITE_ROWS
from dueline.core.request import delay_seconds
from dueline.core.tick import CHECKPOINT_JOBS
from local.deploy import deploy
from local.emulator import Emulator, free_port
from local.endpoints import Endpoints, find
from local.signing_proxy import signing_proxy
from local.template import configure, synthesize
from tests.e2e.chaos.proxy import Answer, Exchange, Proxy, environment, proxy, straight
from tests.waiting import wait_until

OURS, WORKER = "Dueline, plain consumer", "Dueline, its worker"
DYNEIN, CELERY = "Dynein's protocol", "Celery, ETA on Redis"
FLOOR = "SQS alone"
MISSED, KILLED = 2, 4
# AWS's periods, four times as fast: the lookahead is four periods. A lease has 12 s at least.
PERIOD, LOOKAHEAD = 15, 60
PERIODS = {"tick_period": PERIOD, "lookahead": LOOKAHEAD, "lease": 12, "direct_horizon": 75, "local_run": True}
DEPLOYED: dict[str, Any] = {"name": "lateness", "queues": {**dict.fromkeys(PLAIN), EXACT: {"precise": True}}}
KILLED_QUEUE = PLAIN[0]
# What is due within a period of the first tick goes at once.
_OURS, _OTHERS = Load(first=PERIOD + 5, steady=105, rush=2000), Load(first=5, steady=25, rush=2000)
_FLOOR = Load(first=5, steady=8, rush=2000)
_INGESTED_A_SECOND, _INGEST_SECONDS, _STORED_A_SECOND, _SENT_A_SECOND = 250, 4, 400, 300
_WARMING_JOBS, _NOT_IN_THIS_RUN_SECONDS = 200, 86_400.0
# Half of the cancels are before the first tick, the others in the midst of the run.
_CANCELLED_SHARE, _CANCEL_AGAIN_AT = 0.05, 0.35
# Of the inbound queue: deployed it is 181 s, and a run would wait for that where the emulator loses an ingest.
_VISIBILITY_SECONDS = 15
_CALLS_AT_ONCE = 32
_UNUSED_PARTITION = 998
_DYNEIN_TABLE = "dynein"
# The local AWS looks each 0.1 s for what is due. All at once, it is the sends that take their time.
_TO_A_CONSUMER = {FLOW: {"p50": 0.13, "p95": 0.19, "p99": 0.3}, RUSH: {"p95": 1.2, "p99": 1.5}}


def measure(scratch: Path) -> Figures:
    """Measure one after the other, Dueline over a longer flow."""
    redis_program()
    with staged(scratch) as stage:
        figures = _dueline(stage, _OURS)
        contenders = figures["contenders"]
        contenders[DYNEIN] = _dynein(stage, _OTHERS)
        contenders[CELERY] = _celery(scratch / "celery", _OTHERS)
        contenders[FLOOR] = _sqs_alone(stage)
    return figures


def targets(figures: Figures) -> list[Target]:
    """Return what lateness is to reach, and the counts of all of Dueline's run."""
    whole, contenders, killed = figures["all"], figures["contenders"], figures["repeated by a killed tick"]
    consumer = [
        Target(f"lateness {name} to a plain SQS consumer, {kind}", contenders[OURS][kind][name], bound, unit=" s")
        for kind in (FLOW, RUSH)
        for name, bound in _TO_A_CONSUMER[kind].items()
    ]
    p99 = {kind: round(contenders[WORKER][kind]["p99"] * 1000, 1) for kind in (FLOW, RUSH)}
    return [
        *consumer,
        *(Target(f"lateness p99 in a worker, {kind}", late, 100, unit=" ms") for kind, late in p99.items()),
        Target("jobs early", whole["early"], 0),
        Target("jobs lost", whole["lost"], 0),
        Target("jobs after a cancel that was promised", whole["after a promised cancel"], 0),
        Target("repeats that no kill explains", whole["repeated"] - killed, 0),
        Target("repeats by a killed tick", killed, CHECKPOINT_JOBS),
        Target("jobs on time within 60 s", whole["on time"] * 100, 99.999, at_most=False, unit=" %"),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A running deployment. `proxy` passes on its functions' requests to AWS, not those of consumers and workers."""

    emulator: Emulator
    endpoints: Endpoints
    deployment: Deployment
    client: Client
    proxy: Proxy
    folder: Path

    def queue(self, url: str) -> SqsQueue:
        return SqsQueue(self.emulator.client("sqs"), url)

    def environment(self, record: Path) -> dict[str, str]:
        """Return what a consumer's process needs to find AWS and the record."""
        return {**aws_environment(self.emulator.endpoint), RECORD: str(record)}

    def is_ingested(self) -> bool:
        depth = self.queue(self.endpoints.inbound_url).depth()
        return not (depth.waiting or depth.in_flight)

    def targets(self) -> list[dict[str, Any]]:
        """Return what the deployment's schedules invoke."""
        scheduler, group = self.emulator.client("scheduler"), self.deployment.names.schedule_group
        names = [schedule["Name"] for schedule in scheduler.list_schedules(GroupName=group)["Schedules"]]
        return [scheduler.get_schedule(GroupName=group, Name=name)["Target"] for name in names]


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Deploy while the context lasts; nothing ticks yet."""
    queues, periods = folder / "queues-of-bench.yaml", folder / "periods.yaml"
    queues.write_text(yaml.safe_dump(DEPLOYED))
    periods.write_text(yaml.safe_dump(PERIODS))
    configured = configure(queues, out=folder, periods=periods)
    deployment, assembly = load(configured), synthesize(configured, out=folder / "cdk.out")
    with ExitStack() as stack:
        port = free_port()
        between = stack.enter_context(proxy(f"http://127.0.0.1:{port}"))
        emulator = Emulator(log=folder / "log", port=port, environment=environment(between.endpoint))
        deploy(stack.enter_context(emulator), assembly)
        endpoints = find(emulator, deployment)
        endpoints = replace(endpoints, api=stack.enter_context(signing_proxy(endpoints.api)))
        visibility = {"VisibilityTimeout": str(_VISIBILITY_SECONDS)}
        emulator.client("sqs").set_queue_attributes(QueueUrl=endpoints.inbound_url, Attributes=visibility)
        client = Client.connect(deployment.name, url=endpoints.api)
        fields: dict[str, Any] = {"emulator": emulator, "endpoints": endpoints, "deployment": deployment}
        yield Stage(**fields, client=client, proxy=between, folder=folder)


class Kill:
    """Kills -9 the process of a tick of a queue while it sends: its first request takes effect, unanswered."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._lock = threading.Lock()
        self.at = 0.0

    def __call__(self, exchange: Exchange) -> Answer | None:
        answer = exchange.pass_on()
        sender = exchange.sender
        is_send = sender.function == "tick" and exchange.operation == "SendMessageBatch"
        if not is_send or exchange.queue != self._queue:
            return answer
        with self._lock:
            if self.at:
                return answer
            self.at = time.time()
            sender.kill()
        return None


@contextmanager
def ticking(stage: Stage, *, begin: float) -> Iterator[Kill]:
    """Fire every schedule of the deployment each period from `begin` (since 1970) on, but for one firing."""
    kill, stop = Kill(stage.deployment.names.queue(KILLED_QUEUE)), threading.Event()
    targets, functions = stage.targets(), stage.emulator.client("lambda")

    def fire() -> None:
        with ThreadPoolExecutor(_CALLS_AT_ONCE) as pool:
            for firing in itertools.count():
                if stop.wait(max(0.0, begin + firing * PERIOD - time.time())):
                    return
                if firing == KILLED:
                    stage.proxy.around = kill
                for target in targets if firing != MISSED else ():
                    pool.submit(functions.invoke, FunctionName=target["Arn"], Payload=target["Input"].encode())

    thread = threading.Thread(target=fire, daemon=True)
    thread.start()
    try:
        yield kill
    finally:
        stop.set()
        thread.join()
        stage.proxy.around = straight


def _warm_ticks(stage: Stage) -> None:
    """Tick an unused partition, once for each schedule at once: cold starts are not what is measured."""
    functions = stage.emulator.client("lambda")
    event = json.dumps({"queue": KILLED_QUEUE, "partition": _UNUSED_PARTITION}).encode()
    with ThreadPoolExecutor(_CALLS_AT_ONCE) as pool:
        list(pool.map(lambda target: functions.invoke(FunctionName=target["Arn"], Payload=event), stage.targets()))


def _dueline(stage: Stage, load: Load) -> Figures:
    """Have jobs in the table before the first tick, as if scheduled long ago; cancel some, let all land."""
    record, dues = stage.folder / "ours", load.dues()
    with _consumers(stage, record):
        begin = math.ceil(time.time() + len(dues) / _INGESTED_A_SECOND + _INGEST_SECONDS)
        schedule = Schedule(begin=begin, jobs=dues)
        jobs = {due.number: schedule.job(due) for due in dues}
        send(list(jobs.values()), stage.queue(stage.endpoints.inbound_url))
        # Ingest itself sends what is still on its way by then.
        while not (ingested := stage.is_ingested()) and time.time() < begin:
            time.sleep(0.2)
        promises = _cancel(stage, jobs, _chosen(dues, seed=1))
        with ticking(stage, begin=begin) as kill:
            sleep_until(begin + load.first + load.steady * _CANCEL_AGAIN_AT)
            waiting = [due for due in dues if schedule.dues[due.number] > time.time() + 1]
            promises |= _cancel(stage, jobs, _chosen(waiting, seed=2) - promises.keys())
            ledger = wait_for_the_last(schedule, record, but=promises)
    promised = frozenset(number for number, is_promised in promises.items() if is_promised)
    ledger = replace(ledger, cancelled=promised, maybe_cancelled=promises.keys() - promised)
    return {
        **figures_of(ledger, dues),
        "cancels": {"200": len(promised), "202": len(promises) - len(promised)},
        "in the table before the first tick": ingested,
        "killed at": round(kill.at and kill.at - begin, 1),
    }


def figures_of(ledger: Ledger, dues: tuple[Due, ...]) -> Figures:
    """Return Dueline's figures by who consumes, and how many repeats a killed tick explains."""
    queues = {OURS: PLAIN, WORKER: (EXACT,)}
    by_consumer = {name: [due for due in dues if due.queue in of] for name, of in queues.items()}
    of_killed = [due.number for due in dues if due.queue == KILLED_QUEUE and is_first_seen(due, by=KILLED)]
    return {
        "contenders": {name: ledger.by_kind(some) for name, some in by_consumer.items()},
        "all": ledger.summary(),
        "repeated by a killed tick": ledger.of(of_killed).repeated,
    }


def is_first_seen(due: Due, *, by: int) -> bool:
    """Return whether a firing is the first that looks ahead to a job of the flow."""
    until = by * PERIOD + LOOKAHEAD
    return not due.rush and until - PERIOD < due.after <= until


def _chosen(dues: Collection[Due], *, seed: int) -> set[int]:
    chance = random.Random(seed)
    return {due.number for due in dues if chance.random() < _CANCELLED_SHARE / 2}


def _cancel(stage: Stage, jobs: Mapping[int, StoredJob], numbers: set[int]) -> dict[int, bool]:
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
    with running(plain, log=log, environment=environment), running(worker, log=log, environment=environment):
        now = Schedule(begin=int(time.time()), jobs=())
        for number, name in enumerate(QUEUES, start=1):
            send([now.job(Due(-number, name, 0, False))], stage.queue(stage.endpoints.queues[name]))
        later = [Due(-number, EXACT, _NOT_IN_THIS_RUN_SECONDS, False) for number in range(_WARMING_JOBS)]
        # Enough for all functions of ingest to start.
        send([now.job(due) for due in later], stage.queue(stage.endpoints.inbound_url))
        expect(wait_until(stage.is_ingested), "ingest is not ready")
        expect(wait_until(lambda: len(dict(read_landed(record))) == len(QUEUES)), "consumers are not ready")
        _warm_ticks(stage)
        yield


def _dynein(stage: Stage, load: Load) -> Any:
    """Put a load into Dynein's table, and let its poller send it to the same plain consumers."""
    dynamodb, sqs = stage.emulator.client("dynamodb"), stage.emulator.client("sqs")
    create_table(dynamodb, _DYNEIN_TABLE)
    urls = {name: sqs.create_queue(QueueName=f"dynein-{name}")["QueueUrl"] for name in QUEUES}
    record, log, dues = stage.folder / "dynein", stage.folder / "dynein.log", load.dues()
    schedule = Schedule(begin=math.ceil(time.time() + len(dues) / _STORED_A_SECOND + 2), jobs=dues)
    # 25 rows a request: how they came into the table is not what is measured.
    table = DynamoTable(dynamodb, _DYNEIN_TABLE, state=_DYNEIN_TABLE)
    with ThreadPoolExecutor(4) as pool:
        if any(pool.map(table.write, chunks([job_row(schedule.job(due)) for due in dues], WRITE_ROWS))):
            raise RuntimeError("rows were left unwritten")
    plain = python("bench.consumers", "plain", *urls.values())
    poller = python("bench.consumers", "dynein", _DYNEIN_TABLE, *(f"{name}={url}" for name, url in urls.items()))
    environment = stage.environment(record)
    with running(plain, log=log, environment=environment), running(poller, log=log, environment=environment):
        return wait_for_the_last(schedule, record).by_kind(dues)


def _celery(folder: Path, load: Load) -> Any:
    """Schedule a load by ETA on Redis, and let it land in one worker of four processes."""
    record = folder / "record"
    with ExitStack() as stack:
        broker = stack.enter_context(redis_server(folder))
        celery = celery_at(broker)
        stack.callback(celery.close)
        command = python("celery", "-A", "bench.consumers", "worker", "--concurrency", "4", "--loglevel", "WARNING")
        environment = {BROKER: broker, RECORD: str(record)}
        stack.enter_context(running(command, log=folder / "worker.log", environment=environment))
        # A job that is not counted.
        celery.send_task(LAND, args=(-1,))
        expect(wait_until(lambda: bool(read_landed(record))), "Celery's worker is not ready")
        dues = load.dues()
        schedule = Schedule(begin=math.ceil(time.time() + len(dues) / _SENT_A_SECOND), jobs=dues)
        for due in dues:
            celery.send_task(LAND, args=(due.number,), eta=schedule.due(due))
        return wait_for_the_last(schedule, record).by_kind(dues)


def _sqs_alone(stage: Stage) -> Any:
    """Send the flow straight to SQS, job by job at its instant, and the rush in tens, each with SQS's own timer."""
    sqs, record, dues = stage.emulator.client("sqs"), stage.folder / "floor", _FLOOR.dues()
    urls = {name: sqs.create_queue(QueueName=f"floor-{name}")["QueueUrl"] for name in QUEUES}
    queues = {name: stage.queue(url) for name, url in urls.items()}
    command, log = python("bench.consumers", "plain", *urls.values()), record.with_suffix(".log")
    with running(command, log=log, environment=stage.environment(record)):
        schedule = Schedule(begin=math.ceil(time.time() + 3), jobs=dues)

        def send_together(batch: list[Due]) -> None:
            delay = delay_seconds(schedule.due(batch[0]), now=datetime.now(UTC))
            queues[batch[0].queue].send([Message(body=str(due.number), delay=delay) for due in batch])

        rush = [[due for due in dues if due.rush and due.queue == name] for name in QUEUES]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(send_together, (batch for jobs in rush for batch in chunks(jobs, BATCH_MESSAGES))))
        for due in sorted((due for due in dues if not due.rush), key=attrgetter("after")):
            sleep_until(schedule.begin + due.after)
            queues[due.queue].send([Message(body=str(due.number))])
        return wait_for_the_last(schedule, record).by_kind(dues)
