"""One deployment in the local AWS, in which everything is measured one after the other."""

import os
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

from bench.part import Bench, Figures, Measured, Target
from bench.processes import of_aws
from dueline import Client, NewJob
from dueline.aws.resources import Resources
from dueline.model import rows
from dueline.ports import WRITE_ROWS
from dueline.retry.calls import LANES
from local.emulator import Emulator
from local.running import Running, running

QUEUE = "emails"
QUEUES = Path(__file__).parent / "queues.yaml"
LATER = timedelta(days=1)
# What `schedule --lines` came to over HTTP, on the machine on which it was found too slow.
BEFORE_A_SECOND = 110
HTTP, DIRECT = "HTTP", "direct client"
RAW_PUTS, RAW_BATCHES = "bare PutItem", "bare BatchWriteItem"
ONE_NOW, ONE_BEFORE = "writes the table, and reads a fence", "sends a message, as before"
_PAYLOAD = {"to": "ann@example.com", "text": "x" * 880}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """So many jobs each way, and so many one by one."""

    jobs: int
    singly: int


FULL, QUICK = Plan(jobs=5000, singly=150), Plan(jobs=1000, singly=30)


def measure(bench: Bench) -> Measured:
    plan, emulator = QUICK if bench.quick else FULL, Emulator(log=bench.scratch / "ministack.log")
    of_environment = of_aws(emulator.endpoint)
    step = partial(_shown, bench)
    with patch.dict(os.environ, of_environment), running(QUEUES, emulator=emulator, step=step) as stage:
        singly, rates = _singly(stage, plan), _rates(stage, plan, bench)
    ratio = singly[ONE_NOW] / singly[ONE_BEFORE]
    figures = {"jobs": plan.jobs, "a_second": rates, "singly": singly, "now_to_before": ratio}
    return Measured(figures=figures, ratios={}, targets=targets(figures))


def _shown(bench: Bench, text: str) -> AbstractContextManager[None]:
    bench.progress(text, 0, 1)
    return nullcontext()


def _rates(stage: Running, plan: Plan, bench: Bench) -> dict[str, float]:
    """Return the jobs a second of each way; the bare requests go by as many threads as a client has lanes."""
    name = stage.deployment.name
    clients = {
        HTTP: Client.connect(name, url=stage.endpoints.api),
        DIRECT: Client.connect(name, direct=True),
    }
    ways: dict[str, Callable[[int], None]] = {
        **{way: partial(_schedule_many, client) for way, client in clients.items()},
        RAW_BATCHES: partial(_put, name, WRITE_ROWS),
        RAW_PUTS: partial(_put, name, 1),
    }
    rates = {}
    for number, (way, run) in enumerate(ways.items()):
        bench.progress(way, number, len(ways))
        run(plan.jobs // 10)
        begun = time.monotonic()
        run(plan.jobs)
        rates[way] = plan.jobs / (time.monotonic() - begun)
    return rates


def _schedule_many(client: Client, count: int) -> None:
    results = client.schedule_many(QUEUE, (NewJob(payload=_PAYLOAD, delay=LATER) for _ in range(count)))
    _check_all(results)


def _check_all(results: Sequence[object]) -> None:
    if errors := [each for each in results if isinstance(each, Exception)]:
        raise RuntimeError(f"{len(errors)} jobs were not scheduled, the first because of: {errors[0]}")


def _put(deployment: str, at_once: int, count: int) -> None:
    """Put rows as large as those of the jobs, so many a request, as fast as the emulator takes them."""
    resources = Resources(deployment, queue_urls="", longest=timedelta(seconds=10))
    table = resources.table

    def put(some: int) -> None:
        pk = f"raw#{uuid.uuid4().hex[:1]}"
        made = [{"pk": pk, "sk": f"{uuid.uuid4()}{rows.JOB}", "payload": _PAYLOAD["text"]} for _ in range(some)]
        if at_once == 1:
            table.add(made[0])
        elif table.write(made):
            raise RuntimeError("the emulator throttled")

    with ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(put, [at_once] * (count // at_once)))


def _singly(stage: Running, plan: Plan) -> dict[str, float]:
    """Return the median seconds of one job by a direct client, in turns: one that waits in the table, and one for which
    a message is sent, as was done for every job before."""
    client = Client.connect(stage.deployment.name, direct=True)
    soon = timedelta(seconds=stage.deployment.direct_horizon - 1)
    taken: dict[str, list[float]] = {ONE_NOW: [], ONE_BEFORE: []}
    for _ in range(plan.singly):
        for way, delay in ((ONE_NOW, LATER), (ONE_BEFORE, soon)):
            begun = time.perf_counter()
            client.schedule(QUEUE, _PAYLOAD, delay=delay)
            taken[way].append(time.perf_counter() - begun)
    return {way: median(seconds) for way, seconds in taken.items()}


def targets(figures: Figures) -> tuple[Target, ...]:
    rates, bounds = figures["a_second"], {HTTP: 5 * BEFORE_A_SECOND, DIRECT: 10 * BEFORE_A_SECOND}
    what = "schedule by a direct client, p50 over the local AWS, to before"
    two = "two requests, one after the other, in place of one"
    return (
        *(_rate(way, rates[way], bound=bound) for way, bound in bounds.items()),
        Target(what=what, got=figures["now_to_before"], bound=1.2, before=1.0, why=two),
    )


def _rate(way: str, got: float, *, bound: float) -> Target:
    return Target(
        what=f"schedule_many over the local AWS, {way}",
        got=got,
        bound=bound,
        at_most=False,
        unit=" jobs/s",
        before=BEFORE_A_SECOND,
        why="the local AWS answers no faster: beside it is what it does with bare requests",
    )
