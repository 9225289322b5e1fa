"""All of it: one after the other; in a quick run, whose loads are small, beside one another."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from bench.apart import measured_apart
from bench.cost.payloads import USUAL, json_of
from bench.cost.prices import prices
from bench.lateness.books import Run
from bench.lateness.plan import RUSH, Load, Scheduled
from bench.lateness.redis_server import found, redis_server
from bench.lateness.waiting import wait_for_the_last
from bench.part import Bench, Measured
from bench.processes import wait_until
from bench.redis import price
from bench.redis.kills import kill_redis, kill_worker
from bench.redis.process import BETWEEN, OURS, PRODUCER, REDIS, WORKER
from bench.redis.protocol import Delayed, now_ms
from bench.redis.worker import WORKERS, hired
from bench.results import load

EVERYSEC, ALWAYS = "everysec", "always"
_FAR_MS, _CALL = 3_600_000, 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How much of it: seconds of rounds, the flow, what each kill of Redis is after, and how many jobs wait."""

    seconds: float
    load: Load
    kills: Sequence[tuple[str, float]]
    waiting: int


FULL = Plan(
    seconds=8,
    load=Load(first=2, steady=10, rush=2000),
    kills=((EVERYSEC, 2.0), (EVERYSEC, 2.5), (ALWAYS, 2.0)),
    waiting=100_000,
)
QUICK = Plan(seconds=1, load=Load(first=1, steady=2, rush=100), kills=((EVERYSEC, 1.5), (ALWAYS, 1.0)), waiting=10_000)


def measure(bench: Bench) -> Measured:
    """Measure Redis, and Dueline's CPU beside it; Dueline's bill is that of the stored figures of cost."""
    found()
    plan = QUICK if bench.quick else FULL
    calls: dict[str, Callable[[], Any]] = {
        "cpu": partial(_cpu, bench, plan.seconds),
        "late": partial(_late, bench, plan.load),
        "worker killed": partial(kill_worker, bench.scratch / "worker", bench.progress),
        "kills": lambda: [_kill(bench, number, *kill) for number, kill in enumerate(plan.kills)],
        "price": partial(_price, bench, plan.waiting),
    }
    with ThreadPoolExecutor(len(calls) if bench.quick else 1) as pool:
        started = {name: pool.submit(call) for name, call in calls.items()}
        figures = {name: future.result() for name, future in started.items()}
    return Measured(figures=figures, ratios=ratios(figures))


def ratios(figures: Mapping[str, Any]) -> dict[str, float]:
    told = figures["price"]
    hours = {f"hours until Redis is dearer, {rate} jobs/s": told["crossing"][rate] for rate in told["crossing"]}
    return {
        "memory of a waiting job, B": told["job_bytes"],
        "jobs a CPU second, Redis and its server to Dueline": figures["cpu"]["of Dueline"],
        **hours,
    }


def _cpu(bench: Bench, seconds: float) -> dict[str, Any]:
    folder = bench.scratch / "cpu"
    with redis_server(folder) as url:
        told = measured_apart(
            "bench.redis.process",
            *(str(folder), str(seconds), url),
            log=folder / "errors",
            progress=bench.progress,
        )
    return cpu_of(told)


def cpu_of(told: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """Return microseconds a job, the medians of the rounds; and the whole way's ratio, the median of their ratios."""
    whole = {
        who: [sum(each) for each in zip(*(told[step][who] for step in told), strict=True)] for who in (OURS, REDIS)
    }
    steps = {
        who: {step: median(told[step][who]) * 1e6 for step in (PRODUCER, BETWEEN, WORKER)} for who in (OURS, REDIS)
    }
    of_ours = [ours / theirs for ours, theirs in zip(whole[OURS], whole[REDIS], strict=True)]
    return {"us": steps, "of Dueline": median(of_ours), "rounds": len(of_ours)}


def _late(bench: Bench, load: Load) -> dict[str, Any]:
    folder = bench.scratch / "late"
    written = folder / "record"
    with ExitStack() as stack:
        url = stack.enter_context(redis_server(folder))
        for _ in range(WORKERS):
            stack.enter_context(hired(url, written))
        wishes = tuple(load.wishes())
        queue = Delayed(url)
        wait_until(lambda: len(queue.client.client_list()) > WORKERS, what="Redis's workers ask")
        scheduled = Scheduled(begin=math.ceil(time.time() + 1), wishes=wishes)
        queue.schedule([(number, round(due * 1000), "{}") for number, due in scheduled.dues.items()])
        wait_for_the_last("Redis: jobs land", bench.progress, scheduled=scheduled, written=written)
        run = Run.read(scheduled, written)
    return {kind: books.told() for kind, books in run.by(lambda wish: RUSH if wish.rush else "flow").items()}


def _kill(bench: Bench, number: int, appendfsync: str, seconds: float) -> dict[str, Any]:
    folder = bench.scratch / f"kill-{number}"
    told = kill_redis(folder, appendfsync, seconds=seconds, progress=bench.progress)
    return {"appendfsync": appendfsync, **told}


def _price(bench: Bench, waiting: int) -> dict[str, Any]:
    with redis_server(bench.scratch / "price") as url:
        queue = Delayed(url)
        payloads = [json_of(USUAL.payload(number)) for number in range(_CALL)]
        ecpus = price.ecpus(queue, payloads)
        before = queue.client.info("memory")["used_memory"]
        for first in range(0, waiting, _CALL):
            bench.progress("Redis: jobs wait", first, waiting)
            queue.schedule([(first + place, now_ms() + _FAR_MS, each) for place, each in enumerate(payloads)])
        job_bytes = (queue.client.info("memory")["used_memory"] - before) / waiting
    known = prices()
    cache = price.Cache(ecpus=ecpus, job_bytes=job_bytes, prices=known)
    table = price.Table.of(load("cost").figures, known)
    return {"payload": len(payloads[0]), "waiting": waiting, **price.told(cache, table)}
