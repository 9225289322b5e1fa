"""Start everything again and again, in turns, and take the medians."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.cold.shares import BOTO3, OURS, by_share, share_of
from bench.cold.staged import FUNCTIONS, environment, stage
from bench.cold.start import Start, start
from bench.part import Bench, Measured, Target

USERS = ("Client", "Worker")
_ROUNDS = 6
_QUICK_ROUNDS = 3
_OURS_MILLISECONDS = 100
_WITH_BYTECODE = " with bytecode"

Starts = Mapping[str, Sequence[Start]]


def measure(bench: Bench) -> Measured:
    """Start each function as it is deployed, the same with bytecode, and what users import; round after round."""
    code = stage(bench.scratch / "deployed")
    compiled = stage(bench.scratch / "compiled", bytecode=True)
    starts: dict[str, list[Start]] = defaultdict(list)
    rounds = _QUICK_ROUNDS if bench.quick else _ROUNDS
    of = rounds * (2 * len(FUNCTIONS) + len(USERS) + 1)
    for done, (name, each) in enumerate(_rounds(rounds, code=code, compiled=compiled), start=1):
        starts[name].append(each)
        bench.progress(f"starting {name or 'Python'}", done, of)
    figures = figures_of(starts)
    return Measured(figures=figures, ratios=ratios_of(figures), targets=targets_of(figures))


def _rounds(rounds: int, *, code: Path, compiled: Path) -> Iterator[tuple[str, Start]]:
    """Yield each start by its name; one whose name is empty imports nothing."""
    for _ in range(rounds):
        yield "", start("", code=code)
        for name in FUNCTIONS:
            target, given = f"functions.{name}:handler", environment(name)
            yield name, start(target, code=code, environment=given)
            yield name + _WITH_BYTECODE, start(target, code=compiled, environment=given)
        for user in USERS:
            yield user, start(f"dueline:{user}", code=compiled)


def figures_of(starts: Starts) -> dict[str, Any]:
    """Return the medians: times in milliseconds, memory in MB above an interpreter that imports nothing."""
    bare = median(each.peak for each in starts[""])
    told = {name: _told(all, bare=bare) for name, all in starts.items() if name}
    functions = {name: told[name] | {"compiled": told[name + _WITH_BYTECODE]["cpu"]} for name in FUNCTIONS}
    return {"rounds": len(starts[""]), "functions": functions, "users": {name: told[name] for name in USERS}}


def _told(starts: Sequence[Start], *, bare: float) -> dict[str, Any]:
    """Tell of starts of one thing. A module's median is its own: what holds one up seldom holds it up again."""
    loaded, taken = starts[0].loaded, starts[0].modules
    modules = {name: median(each.modules.get(name, 0.0) for each in starts) for name in taken}
    return {
        "wall": _median(each.wall for each in starts),
        "cpu": _median(each.cpu for each in starts),
        "shares": {share: round(milliseconds, 2) for share, milliseconds in by_share(modules).items()},
        "clients": _median(sum(each.clients.values()) for each in starts),
        "made": list(starts[0].clients),
        "memory": _median(each.peak - bare for each in starts),
        "modules": len(loaded),
        "ours": sum(share_of(module) == OURS for module in loaded),
    }


def _median(values: Iterable[float]) -> float:
    return round(median(values), 2)


def ratios_of(figures: Mapping[str, Any]) -> dict[str, float]:
    """Return what shares of a start are ours and boto3's, and what bytecode would leave of it."""
    ratios: dict[str, float] = {}
    for name, told in figures["functions"].items():
        all = sum(told["shares"].values()) + told["clients"]
        ratios |= {f"{share} of {name}": told["shares"][share] / all for share in (OURS, BOTO3)}
        ratios[f"{name} with bytecode"] = told["compiled"] / told["cpu"]
    return {name: round(ratio, 4) for name, ratio in ratios.items()}


def targets_of(figures: Mapping[str, Any]) -> tuple[Target, ...]:
    return tuple(
        Target(
            what=f"ours of the cold start of {name}",
            got=told["shares"][OURS],
            bound=_OURS_MILLISECONDS,
            unit=" ms",
            why="it is compiling sources, and making dataclasses and pydantic's models",
        )
        for name, told in figures["functions"].items()
    )
