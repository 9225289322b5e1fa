"""Growth: what each step costs with none, with some and with a million jobs waiting in one partition.

Each size has an engine of its own. The sizes take turns, round by round, so that what else the machine does meets all.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from bench.growth.deployment import HAND_OVER, NOW, PARTITION, Stand, create_tables, jobs_waiting
from bench.growth.engine import Engine, running
from bench.growth.meter import Meter
from bench.part import Figures
from dueline.memory import VirtualClock
from dueline.model import instant
from dueline.model.rows import FIRST, JOB, key, read_job
from local.emulator import CREDENTIALS, REGION

# Seconds by what they were taken for and by how many jobs waited, one of each round.
Taken = defaultdict[str, defaultdict[int, list[float]]]
Tell = Callable[[int], None]

# A tick of 1,000 jobs is measured in one round of so many: it takes as long as all others together.
_HAND_OVER_EVERY = _WARMING_ROUNDS = 8
_ENGINE_ROUNDS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A table in which so many jobs wait, once with clients as they are, and once with clients that are counted."""

    count: int
    bare: Stand
    counted: Stand
    meter: Meter


@contextmanager
def places(sizes: Sequence[int], *, scratch: Path, tell: Tell) -> Iterator[list[Place]]:
    """Yield a place of each size; `tell` hears of each that is ready."""
    with ExitStack() as stack:
        made = []
        for number, count in enumerate(sizes):
            engine = stack.enter_context(running(scratch / f"{count}", jobs_waiting(count)))
            made.append(_place(engine, count))
            tell(number + 1)
        yield made


def _place(engine: Engine, count: int) -> Place:
    clock, bare, counted = VirtualClock(NOW), _session(), _session()
    meter = Meter(counted)
    create_tables(engine, bare)
    place = Place(
        count=count,
        bare=Stand(engine, clock=clock, session=bare),
        counted=Stand(engine, clock=clock, session=counted),
        meter=meter,
    )
    check(place.bare, count)
    return place


def _session() -> boto3.Session:
    account: Any = CREDENTIALS
    return boto3.Session(region_name=REGION, **account)


def check(stand: Stand, count: int) -> None:
    """Hold what was loaded against the real code: the first row and the last are of jobs that wait, and that is all."""
    loaded = jobs_waiting(count)
    last = instant.text(loaded.first + (count - 1) * loaded.step)
    for after, is_there in ((FIRST, count > 0), (last, count > 0), (f"{last}~", False)):
        page = stand.table.page(PARTITION, after=after, until="~", limit=1).rows
        if [read_job(row).payload for row in page] != ["1"] * is_there:
            raise RuntimeError(f"not as if {count} jobs wait: after {after} there are {page}")


def cpu(places: Sequence[Place], *, rounds: int, tell: Tell) -> Taken:
    """Return the CPU seconds of this process for each step and size, of each round."""
    taken: Taken = defaultdict(lambda: defaultdict(list))
    for number in range(-_WARMING_ROUNDS, rounds):
        for step in places[0].bare.steps:
            if step == HAND_OVER and number % _HAND_OVER_EVERY:
                continue
            for place in _in_turn(places, number):
                seconds = _seconds(place.bare, step)
                if number >= 0:
                    taken[step][place.count].append(seconds)
        tell(max(0, number + 1))
    return taken


def _in_turn(places: Sequence[Place], number: int) -> list[Place]:
    """Return the places, another one first in each round."""
    first = number % len(places)
    return [*places[first:], *places[:first]]


def _seconds(stand: Stand, step: str) -> float:
    stand.prepare(step)
    act, began = stand.steps[step], time.process_time()
    act()
    return time.process_time() - began


def costs(place: Place) -> dict[str, Figures]:
    """Return the requests, bytes and units of each step, of one round: a second one costs the same."""
    _counted(place, asks=False)  # The first one finds no fence yet, and no connection.
    plain, asking = _counted(place, asks=False), _counted(place, asks=True)
    units = ("read_units", "write_units")
    return {step: {**plain[step], **{name: asking[step][name] for name in units}} for step in plain}


def _counted(place: Place, *, asks: bool) -> dict[str, Figures]:
    told = {}
    for step, act in place.counted.steps.items():
        place.meter.asks = False
        place.counted.prepare(step)
        place.meter.take()
        place.meter.asks = asks
        act()
        told[step] = asdict(place.meter.take())
    return told


def engine(places: Sequence[Place]) -> Taken:
    """Return the seconds in which each engine answers, this side's own included, of each round."""
    taken: Taken = defaultdict(lambda: defaultdict(list))
    for number in range(_ENGINE_ROUNDS):
        for place in _in_turn(places, number):
            for name, ask in _asked(place, number).items():
                began = time.perf_counter()
                ask()
                taken[name][place.count].append(time.perf_counter() - began)
    return taken


def _asked(place: Place, number: int) -> dict[str, Callable[[], object]]:
    """Return requests of rows long past, which no step meets."""
    table, past = place.bare.table, instant.text(NOW - timedelta(days=1))
    row = {**jobs_waiting(1).row, "sk": f"{past}#{number}#{JOB}"}
    return {
        "Query of nothing": partial(table.page, PARTITION, after=FIRST, until=FIRST + "1"),
        "BatchGetItem of a row": partial(table.read, [key(row)]),
        "BatchWriteItem of a row": partial(table.write, [row]),
    }


def medians(taken: Taken) -> dict[str, dict[str, float]]:
    """Return the median of what was taken, in ms; sizes are text, as JSON has them."""
    return {
        name: {str(size): 1000 * statistics.median(each) for size, each in sizes.items()}
        for name, sizes in taken.items()
    }
