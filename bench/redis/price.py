"""What a wait costs on ElastiCache Serverless, by what was counted here, beside Dueline's bill for the same wait."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.cost.bill import GB, MILLION
from bench.cost.figures import OURS as TENS
from bench.cost.prices import Prices
from bench.redis.protocol import Delayed, now_ms
from bench.redis.worker import POLL_SECONDS, WORKERS

OURS, REDIS = "Dueline", "Redis"
RATES = (1, 100, 10_000)
WAITS = {"1 hour": 1, "6 hours": 6, "a day": 24, "7 days": 168, "30 days": 720}
# Workers with nothing to do ask most often; each question counts as one command.
POLLS_A_SECOND = WORKERS / POLL_SECONDS
_RECEIVED = 10
_FURTHEST_HOURS, _STEPS = 24 * 365, 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Cache:
    """Bills a million jobs, each of so many ECPUs and of so many bytes while it waits."""

    ecpus: float
    job_bytes: float
    prices: Prices

    def dollars(self, rate: int, hours: float) -> float:
        """Return the bill at so many jobs a second that each wait so long; a cache is charged for its least size."""
        requests = (self.ecpus + POLLS_A_SECOND / rate) * self.prices.cache_million
        gb = max(self.waiting_gb(rate, hours), self.prices.cache_least_gb)
        return requests + gb * self.prices.cache_gb_hour / (rate * 3600) * MILLION

    def waiting_gb(self, rate: int, hours: float) -> float:
        return rate * hours * 3600 * self.job_bytes / GB


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Dueline's bill by bench/cost: that of a wait of a day, and what each day more or less adds to it."""

    of_a_day: Mapping[str, float]
    a_day: float
    received: float

    @classmethod
    def of(cls, cost: Mapping[str, Any], prices: Prices) -> "Table":
        """Return it by the figures of the part `cost`, and with what receiving and deleting in tens adds."""
        waits = cost["by_wait"]
        return cls(
            of_a_day={rate: bill[TENS] for rate, bill in cost["by_rate"].items()},
            a_day=(waits["30"][TENS] - waits["1"][TENS]) / (30 - 1),
            received=2 * prices.sqs_million / _RECEIVED,
        )

    def dollars(self, rate: int, hours: float) -> float:
        return self.of_a_day[str(rate)] + (hours / 24 - 1) * self.a_day + self.received


def crossing(cache: Cache, table: Table, rate: int) -> float:
    """Return from how many hours on Redis is dearer; 0 where it always is. Its memory makes it so in the end."""
    hours = range(_FURTHEST_HOURS * _STEPS)
    dearer = bisect_left(hours, True, key=lambda at: _is_dearer(cache, table, rate, at / _STEPS))
    return dearer / _STEPS


def _is_dearer(cache: Cache, table: Table, rate: int, hours: float) -> bool:
    return cache.dollars(rate, hours) >= table.dollars(rate, hours)


def told(cache: Cache, table: Table) -> dict[str, Any]:
    """Return the bills by rate and wait, and where they cross, in hours."""
    return {
        "ecpus": cache.ecpus,
        "job_bytes": cache.job_bytes,
        "bills": {
            str(rate): {
                name: {OURS: table.dollars(rate, hours), REDIS: cache.dollars(rate, hours)}
                for name, hours in WAITS.items()
            }
            for rate in RATES
        },
        "gb": {name: cache.waiting_gb(RATES[-1], hours) for name, hours in WAITS.items()},
        "crossing": {str(rate): crossing(cache, table, rate) for rate in RATES},
    }


def ecpus(queue: Delayed, payloads: list[str]) -> float:
    """Return the ECPUs that a job takes in all, as AWS words it: the more of its commands and of the KB it transfers.

    Jobs are acknowledged one by one, so a removal of many is not taken for one command; a script counts for what it
    runs.
    """
    now = now_ms()
    return (
        _ecpus(queue, lambda: queue.schedule([(number, now, each) for number, each in enumerate(payloads)]))
        + _ecpus(queue, lambda: [*queue.drain(now=now, at_once=1)])
    ) / len(payloads)


def _ecpus(queue: Delayed, step: Any) -> float:
    queue.client.config_resetstat()
    step()
    commands, stats = queue.client.info("commandstats"), queue.client.info("stats")
    calls = sum(told["calls"] for name, told in commands.items() if name != "cmdstat_info")
    kilobytes = (stats["total_net_input_bytes"] + stats["total_net_output_bytes"]) / 1024
    return float(max(calls, kilobytes))
