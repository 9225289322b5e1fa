"""A delayed queue on Redis: how late its jobs are, and what a wait costs on ElastiCache Serverless, beside Dueline."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bill import GB, MILLION, PRICES
from bench.bill import OURS as TENS
from bench.harness import Figures, expect, load, python, running
from bench.load import RECORD, Load, Schedule, wait_for_the_last
from bench.payloads import USUAL, json_of
from bench.redis_queue import POLL_SECONDS, WORKERS, DelayedQueue, now_ms, redis_program, redis_server
from tests.waiting import wait_until

OURS, REDIS = "Dueline", "Redis"
RATES = (1, 100, 10_000)
WAITS = {"1 hour": 1, "6 hours": 6, "a day": 24, "7 days": 168, "30 days": 720}
_FAR_MS, _CALL, _WAITING = 3_600_000, 1000, 100_000
# What receives and deletes of ten add to Dueline's bill, since Redis's claims are in its own.
_RECEIVED = 2 * PRICES.sqs_million / 10
_FURTHEST_HOURS, _STEPS = 24 * 365, 10


def measure(scratch: Path) -> Figures:
    """Measure Redis; Dueline's bill is that of the stored figures of cost."""
    redis_program()
    price = _price(scratch / "price")
    return {"late": _late(scratch / "late", Load(first=2, steady=10, rush=2000)), "price": price}


def _late(folder: Path, load: Load) -> Any:
    record, dues = folder / "record", load.dues()
    with ExitStack() as stack:
        url = stack.enter_context(redis_server(folder))
        for _ in range(WORKERS):
            worker = python("bench.redis_queue", url)
            stack.enter_context(running(worker, log=folder / "worker.log", environment={RECORD: str(record)}))
        queue = DelayedQueue(url)
        expect(wait_until(lambda: len(queue.client.client_list()) > WORKERS), "Redis's workers do not poll")
        schedule = Schedule(begin=math.ceil(time.time() + 1), jobs=dues)
        queue.schedule([(number, round(due * 1000), "{}") for number, due in schedule.dues.items()])
        return wait_for_the_last(schedule, record).by_kind(dues)


def _price(folder: Path) -> Figures:
    with redis_server(folder) as url:
        queue = DelayedQueue(url)
        payloads = [json_of(USUAL.payload(number)) for number in range(_CALL)]
        ecpus = _ecpus(queue, payloads)
        before = queue.client.info("memory")["used_memory"]
        for first in range(0, _WAITING, _CALL):
            queue.schedule([(first + place, now_ms() + _FAR_MS, each) for place, each in enumerate(payloads)])
        job_bytes = (queue.client.info("memory")["used_memory"] - before) / _WAITING
    cache, cost = Cache(ecpus=ecpus, job_bytes=job_bytes), load("cost").figures
    return {"payload": len(payloads[0]), "waiting": _WAITING, **bills(cache, cost)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cache:
    """Bills a million jobs on ElastiCache Serverless, each of so many ECPUs and of so many bytes while it waits."""

    ecpus: float
    job_bytes: float

    def dollars(self, rate: int, hours: float) -> float:
        """Return the bill at so many jobs a second that each wait so long; a cache is charged for its least size."""
        # Workers with nothing to do poll most often; each poll counts as one command.
        requests = (self.ecpus + WORKERS / POLL_SECONDS / rate) * PRICES.cache_million
        gb = max(self.waiting_gb(rate, hours), PRICES.cache_least_gb)
        return float(requests + gb * PRICES.cache_gb_hour / (rate * 3600) * MILLION)

    def waiting_gb(self, rate: int, hours: float) -> float:
        return rate * hours * 3600 * self.job_bytes / GB


def dueline_dollars(cost: Mapping[str, Any], rate: int, hours: float) -> float:
    """Return Dueline's bill, in tens, by the figures of cost: of a day's wait, and what each day more or less adds."""
    waits = cost["by_wait"]
    a_day = (waits["30"][TENS] - waits["1"][TENS]) / (30 - 1)
    return float(cost["by_rate"][str(rate)][TENS] + (hours / 24 - 1) * a_day + _RECEIVED)


def crossing(cache: Cache, cost: Mapping[str, Any], rate: int) -> float:
    """Return from how many hours on Redis is more expensive: its memory makes it so in the end. 0: always."""
    hours = (step / _STEPS for step in range(_FURTHEST_HOURS * _STEPS))
    return next(each for each in hours if cache.dollars(rate, each) >= dueline_dollars(cost, rate, each))


def bills(cache: Cache, cost: Mapping[str, Any]) -> Figures:
    """Return the bills by rate and wait, and where they cross, in hours."""
    return {
        "ecpus": cache.ecpus,
        "job_bytes": cache.job_bytes,
        "bills": {
            str(rate): {
                name: {OURS: dueline_dollars(cost, rate, hours), REDIS: cache.dollars(rate, hours)}
                for name, hours in WAITS.items()
            }
            for rate in RATES
        },
        "gb": {name: cache.waiting_gb(RATES[-1], hours) for name, hours in WAITS.items()},
        "crossing": {str(rate): crossing(cache, cost, rate) for rate in RATES},
    }


def _ecpus(queue: DelayedQueue, payloads: list[str]) -> float:
    """Return the ECPUs that a job takes in all, as AWS words it: the more of its commands and of the KB it transfers.

    Jobs are acknowledged one by one, so that a removal of many does not count as one command; a script counts for what
    it runs.
    """
    now = now_ms()
    scheduled = _counted(queue, lambda: queue.schedule([(number, now, each) for number, each in enumerate(payloads)]))
    return (scheduled + _counted(queue, lambda: queue.drain(now=now))) / len(payloads)


def _counted(queue: DelayedQueue, step: Callable[[], None]) -> float:
    queue.client.config_resetstat()
    step()
    commands, stats = queue.client.info("commandstats"), queue.client.info("stats")
    calls = sum(stat["calls"] for name, stat in commands.items() if name != "cmdstat_info")
    return float(max(calls, (stats["total_net_input_bytes"] + stats["total_net_output_bytes"]) / 1024))
