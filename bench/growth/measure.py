"""Measure growth and herds; make figures, ratios and targets of them."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bench.growth import step_costs
from bench.growth.deployment import HAND_OVER, HANDED_OVER
from bench.growth.herd import PARTITIONS, stampede
from bench.growth.latency import Latency
from bench.part import Bench, Figures, Measured, Target

COUNTS = ("requests", "bytes_out", "bytes_in", "read_units", "write_units")
_MOST_CPU = 1.10


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """How much is measured: by how many jobs that wait, in how many rounds, with how many jobs in a herd."""

    sizes: tuple[int, ...]
    rounds: int
    herd: int


FULL = Extent(sizes=(0, 10_000, 1_000_000), rounds=160, herd=1_000_000)
QUICK = Extent(sizes=(0, 100_000), rounds=16, herd=50_000)


def measure(bench: Bench) -> Measured:
    """Measure what each step costs by how many jobs wait, and how herds drain."""
    extent = QUICK if bench.quick else FULL
    figures = {**_growth(bench, extent), "herds": _herds(bench, extent.herd), "latency": asdict(Latency())}
    return Measured(figures=figures, ratios=ratios_of(figures), targets=tuple(targets_of(figures)))


def _growth(bench: Bench, extent: Extent) -> Figures:
    def tell(doing: str, of: int) -> step_costs.Tell:
        return lambda done: bench.progress(doing, done, of)

    sizes = list(map(str, extent.sizes))
    tell_loaded, tell_rounds = tell("tables loaded", len(sizes)), tell("rounds of steps", extent.rounds)
    with step_costs.places(extent.sizes, scratch=bench.scratch, tell=tell_loaded) as places:
        costs = {str(place.count): step_costs.costs(place) for place in places}
        answers = step_costs.medians(step_costs.engine(places))
        cpu = step_costs.medians(step_costs.cpu(places, rounds=extent.rounds, tell=tell_rounds))
    steps = {step: {size: {**costs[size][step], "cpu_ms": cpu[step][size]} for size in sizes} for step in cpu}
    return {"sizes": sizes, "rounds": extent.rounds, "steps": steps, "engine_ms": answers}


def _herds(bench: Bench, jobs: int) -> list[Figures]:
    done, of = 0, sum(PARTITIONS)

    def tell() -> None:
        nonlocal done
        done += 1
        bench.progress("partitions of herds", done, of)

    return [stampede(jobs, partitions=partitions, latency=Latency(), tell=tell) for partitions in PARTITIONS]


def growth_of(figures: Figures, what: str) -> dict[str, float]:
    """Return, for each step, how many times as much it takes with the most jobs waiting as with none.

    Of counts, that is the most of any size to the least, so that one which falls is not flat either.
    """
    grown = {}
    for step, by_size in figures["steps"].items():
        none, *others = (_amount(by_size[size][what]) for size in figures["sizes"])
        grown[step] = others[-1] / none if what == "cpu_ms" else _spread(none, *others)
    return grown


def _amount(told: float | dict[str, int]) -> float:
    return sum(told.values()) if isinstance(told, dict) else told


def _spread(*counts: float) -> float:
    least, most = min(counts), max(counts)
    return 1.0 if least == most else most / least if least else math.inf


def cpu_of_a_job_ms(figures: Figures) -> float:
    """Return the CPU of one job of a tick that hands over many, with none waiting."""
    cpu: float = figures["steps"][HAND_OVER][figures["sizes"][0]]["cpu_ms"]
    return cpu / HANDED_OVER


def ratios_of(figures: Figures) -> dict[str, float]:
    most = int(figures["sizes"][-1])
    cpu = {f"CPU of {step}, {most:,} waiting to none": ratio for step, ratio in growth_of(figures, "cpu_ms").items()}
    one, *others = figures["herds"]
    ticks = {
        f"seconds to send a herd, {one['partitions']} partition to {herd['partitions']}": seconds_of(one)
        / seconds_of(herd)
        for herd in others
    }
    return cpu | ticks


def seconds_of(herd: Figures) -> float:
    """Return how long a herd took to send."""
    seconds: float = herd["last_sent"] - herd["first_sent"]
    return seconds


def targets_of(figures: Figures) -> Iterator[Target]:
    """Yield what is to hold: counts that do not grow, CPU that does by a tenth at most, and each job once, in time."""
    most = f"{int(figures['sizes'][-1]):,}"
    for what in COUNTS:
        got = max(growth_of(figures, what).values())
        yield Target(what=f"{what.replace('_', ' ')} of any step, {most} waiting to none", got=got, bound=1.0)
    for step, ratio in growth_of(figures, "cpu_ms").items():
        yield Target(what=f"CPU of {step}, {most} waiting to none", got=ratio, bound=_MOST_CPU)
    for name in ("lost", "repeated", "early"):
        yield Target(what=f"jobs of a herd that are {name}", got=sum(herd[name] for herd in figures["herds"]), bound=0)
