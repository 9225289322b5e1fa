"""Scale, by simulation: what a partition sustains, and how it recovers from outages, over models of AWS."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from bench.aws_model import Aws
from bench.counted import write_units
from bench.harness import Figures, Target
from bench.load import ON_TIME_SECONDS
from bench.simulation import START, Api, Record, Region, Storage
from dueline.core import instant, rows
from dueline.core.job import Partition
from dueline.core.queue_settings import JOBS_PER_PARTITION

PARTITION = Partition(queue="emails", number=0)
DAY, HOUR, SOON_SECONDS = 86_400.0, 3600.0, 1200.0
SERVICES = ("dynamodb", "sqs", "scheduler")
# A partition is checked with a little less than it sustains.
CHECKED, HEADROOM, ON_TIME_TARGET = 0.95, 1.5, 0.99999
# More than any partition carries.
_MORE_THAN_ENOUGH = 3000.0
_MISSED = 6
_OUTAGE_BEGINS, _LONGEST_HOURS = 300.0, 8
# Rows that are there already are made so long before they can be read, and so many seconds' at once.
_MADE_BEFORE, _MADE_AT_ONCE = 90.0, 5.0
# What waits for one round of ingest and of the tick is no backlog.
_SAMPLE_SECONDS, _USUAL_SECONDS, _STEADY_SAMPLES = 30.0, 10.0, 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """Jobs a second for so many seconds, each with a row of `row_bytes`, due so many seconds `ahead`.

    They come over the HTTP API, or not at all; those due before the first of them could be are there already. If
    `together`, they are due at the next full minute. The firing of minute `missed` is missed.
    """

    rate: float
    seconds: float
    ahead: float = 900
    row_bytes: int = 1024
    together: bool = False
    comes_in: bool = True
    missed: int = -1
    outage: tuple[str, float, float] = ("", 0.0, 0.0)
    seed: int = 1

    def due(self, submitted: float) -> float:
        due = submitted + self.ahead
        return -(-due // 60) * 60.0 if self.together else due


class World:
    """One partition with its tick, its ingest, and the API's functions."""

    def __init__(self, scenario: Scenario, aws: Aws) -> None:
        self.scenario, self.aws, self.record = scenario, aws, Record(PARTITION)
        horizon = scenario.seconds + 2 * aws.lookahead
        self.storage = Storage(aws, row_bytes=scenario.row_bytes, horizon=horizon)
        places = {str(PARTITION): (self.storage, self.record)}
        self.region = Region(aws=aws, random=Random(scenario.seed), places=places, outage=scenario.outage)
        self.time, self.random = self.region.time, self.region.random
        self._api = Api(self.region)
        self.samples: list[tuple[float, int]] = []
        # Begin as after a tick that was fired just before: what is due within the lookahead is sent.
        fence, owner = (
            instant.text(instant.from_epoch_ms(instant.epoch_ms(START) + int(aws.lookahead * 1000))),
            "before",
        )
        self.storage.state.acquire_lease(PARTITION, owner=owner, now="", lease=fence, fence=fence)
        self.storage.state.checkpoint(PARTITION, owner=owner, cursor=rows.end_of(fence), fence=fence, lease="")
        self.time.start(self._make_rows)
        self.time.start(partial(self.region.fire, PARTITION, missed=scenario.missed))
        self.time.start(self._sample)
        if scenario.comes_in:
            self.time.start(self._schedule)
            self.region.start_pollers()

    def run_until_recovered(self) -> None:
        """Let time pass until the outage is made up for."""
        self.time.run(until=self.scenario.outage[2])
        while self.time.elapsed < self.scenario.seconds and not self._has_recovered():
            self.time.run(until=self.time.elapsed + _SAMPLE_SECONDS)

    @property
    def cursor(self) -> float:
        """Up to when all that is due is sent, as the table has it."""
        key = rows.state_key(PARTITION)
        at = rows.due_at(rows.read_state(self.storage.state.read([key]).rows[key]).cursor)
        return (at - START).total_seconds() if at else 0.0

    def summary(self, end: float) -> Figures:
        """Return how late jobs were that were due up to a time, and how many were lost up to the cursor."""
        late = self.record.ledger(self.aws.lookahead, end).summary()
        past = self.record.ledger(end=self.cursor)
        counts = {"lost": len(past.lost), "early": late["early"], "repeats": past.repeated / max(1, len(past.times))}
        return {
            "jobs": late["jobs"],
            "on_time": late["on time"],
            **{p: late[p] for p in ("p50", "p99", "max")},
            **counts,
        }

    def _has_recovered(self) -> bool:
        usual, recent = _USUAL_SECONDS * self.scenario.rate, self.samples[-_STEADY_SAMPLES:]
        has_caught_up = self.cursor > self.time.elapsed + self.aws.period
        return has_caught_up and all(held <= usual for _, held in recent)

    def _sample(self) -> None:
        while True:
            self.samples.append((self.time.elapsed, self.region.inbound.held))
            self.time.sleep(_SAMPLE_SECONDS)

    def _make_rows(self) -> None:
        """Put the rows that were written long ago, shortly before they can be read."""
        scenario = self.scenario
        made, end = self.aws.lookahead + self._gap(), min(scenario.ahead, scenario.seconds)
        while made < end:
            until = min(end, self.time.elapsed + self.aws.lookahead + _MADE_BEFORE)
            while made < until:
                self.storage.put(rows.job_row(self.record.new_job(scenario.due(made - scenario.ahead))))
                made += self._gap()
            self.time.sleep(_MADE_AT_ONCE)

    def _schedule(self) -> None:
        while self.time.elapsed < self.scenario.seconds:
            job = self.record.new_job(self.scenario.due(self.time.elapsed), written=False)
            self.time.start(partial(self._api.schedule, [job]))
            self.time.sleep(self._gap())

    def _gap(self) -> float:
        return self.random.expovariate(self.scenario.rate)


def steady(rate: float, *, times: float, seconds: float, **others: Any) -> Figures:
    """Let jobs come for so many seconds; return how late they were. Rates are those of an AWS that is not slowed."""
    world = World(Scenario(rate=rate / times, seconds=seconds, **others), Aws().slowed(times))
    world.time.run(until=seconds + 2 * ON_TIME_SECONDS)
    return {"rate": rate, **world.summary(seconds)}


def tick_rate(*, times: float, seconds: float, row_bytes: int = 1024) -> float:
    """Return how many jobs a second a partition's ticks send that always have more, gaps and all."""
    rate = _MORE_THAN_ENOUGH / times
    scenario = Scenario(rate=rate, seconds=seconds, ahead=DAY, row_bytes=row_bytes, comes_in=False)
    world = World(scenario, Aws().slowed(times))
    world.time.run(until=seconds)
    (start, _), *ticks = [each for each in world.region.dispatched if each[1]]
    return times * sum(count for _, count in ticks) / (ticks[-1][0] - start)


def outage(service: str, *, rate: float, ahead: float, times: float, lasts: float = HOUR) -> Figures:
    """Let a service fail for a while; return what that costs."""
    end, seconds = _OUTAGE_BEGINS + lasts, _LONGEST_HOURS * HOUR
    failing, comes_in = (service, _OUTAGE_BEGINS, end), service == "dynamodb"
    scenario = Scenario(rate=rate / times, seconds=seconds, ahead=ahead, outage=failing, comes_in=comes_in)
    world = World(scenario, Aws().slowed(times))
    world.run_until_recovered()
    at, held = zip(*world.samples, strict=True)
    ledger = world.record.ledger()
    dues, landed = (
        sorted(ledger.dues.values()),
        sorted(ledger.dues[each] + late for each, late in ledger.lateness().items()),
    )
    overdue = [bisect_right(dues, time) - bisect_right(landed, time) for time in at]
    few = ON_TIME_SECONDS * scenario.rate / 6

    def cleared(counts: Any) -> float:
        last = max((time for time, count in zip(at, counts, strict=True) if count > few), default=0.0)
        return max(0.0, last - end)

    return {
        "service": service,
        "rate": rate,
        "ahead": ahead,
        "recovered": world.time.elapsed < seconds,
        "drained": cleared(overdue),
        "ingested": cleared(held) if comes_in else 0.0,
        **world.summary(world.time.elapsed - ON_TIME_SECONDS),
    }


def measure(scratch: Path) -> Figures:
    """Simulate, on two processes at once: first what a partition sustains, and then what follows from that."""
    sizes, shares, slow, seconds = (200, 1024, 4096), (0.3, 0.5, 0.8), 50, 1800.0
    ticks: dict[Any, Any] = {size: partial(tick_rate, times=slow, seconds=seconds, row_bytes=size) for size in sizes}
    first = _simulate(ticks)
    key_takes = {size: Aws().writes_per_key / write_units(size) for size in sizes}
    sustained = {size: min(first[size], key_takes[size]) for size in sizes}
    calls = _outages(sustained[1024], shares)
    calls["steady"] = partial(steady, float(JOBS_PER_PARTITION), times=4, seconds=1080.0, missed=_MISSED)
    for size, together in product(sizes, (False, True)):
        checked = partial(steady, CHECKED * sustained[size], times=slow, seconds=seconds)
        calls["checked", size, together] = partial(checked, row_bytes=size, together=together)
    results = _simulate(calls)
    return {
        "partition": [
            {
                "row_bytes": size,
                "ticks": first[size],
                "writes": key_takes[size],
                "sustained": sustained[size],
                "steady": results["checked", size, False],
                "together": results["checked", size, True],
            }
            for size in sizes
        ],
        "steady": results["steady"],
        "outages": [
            {"share": share, **results[service, ahead, share]}
            for ahead in (DAY, SOON_SECONDS)
            for service in SERVICES
            for share in shares
            if (service, ahead, share) in results
        ],
    }


def _outages(sustained: float, shares: Sequence[float]) -> dict[Any, Any]:
    """Return the runs of outages, the longest first."""
    calls: dict[Any, Any] = {}
    for share, service in product(sorted(shares, reverse=True), SERVICES):
        times = 100 if service == "dynamodb" else 50
        failing = partial(outage, service, rate=share * sustained, times=times)
        calls[service, DAY, share] = partial(failing, ahead=DAY)
        # Jobs that are due soon when DynamoDB is back; at a higher load there is no end to that.
        if service == "dynamodb" and share <= 0.5:
            calls[service, SOON_SECONDS, share] = partial(failing, ahead=SOON_SECONDS)
    return calls


def targets(figures: Figures) -> list[Target]:
    lost = sum(each["lost"] for each in (figures["steady"], *figures["outages"]))
    [sustained] = [each["sustained"] for each in figures["partition"] if each["row_bytes"] == 1024]
    what = "jobs on time (60 s) at the recommended partitions, one firing missed"
    return [
        Target(what, 100 * figures["steady"]["on_time"], 100 * ON_TIME_TARGET, at_most=False, unit=" %"),
        Target("jobs lost, the outages of an hour included", lost, 0),
        Target(
            "what a partition sustains, to what is recommended",
            sustained / JOBS_PER_PARTITION,
            HEADROOM,
            at_most=False,
            unit=" times",
        ),
    ]


def _simulate(calls: Mapping[Any, Callable[[], Any]]) -> dict[Any, Any]:
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        results = {name: pool.submit(call) for name, call in calls.items()}
        return {name: each.result() for name, each in results.items()}
