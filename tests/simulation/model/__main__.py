"""Visit every state of the models, and check that a promise is broken without any one of their rules.

Exits with 1 when a promise is broken, when there are other states than there were, or when a rule is not needed.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tests.simulation.model.explore import Model
from tests.simulation.model.jobs import CROWDS, TwoJobs
from tests.simulation.model.moves import SCENES, MoveRules, move_model
from tests.simulation.model.name_worlds import NAME_WORLDS, NameModel
from tests.simulation.model.names import NameRules
from tests.simulation.model.producers import SIZES, ProducerModel, ProducerRules
from tests.simulation.model.schedule_store import ScheduleRules
from tests.simulation.model.schedules import WORLDS, ScheduleModel
from tests.simulation.model.store import Rules, broken_without


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A model, its rules and its worlds, of which the first shows that rules are needed that name no other."""

    rules: type
    worlds: Mapping[str, Any]
    make: Callable[[Any, Any], Model]


KINDS = {
    "two jobs": Kind(rules=Rules, worlds=CROWDS, make=TwoJobs),
    "a job submitted": Kind(rules=ProducerRules, worlds=SIZES, make=ProducerModel),
    "a job moved": Kind(rules=MoveRules, worlds=SCENES, make=move_model),
    "a schedule": Kind(rules=ScheduleRules, worlds=WORLDS, make=ScheduleModel),
    "a name": Kind(rules=NameRules, worlds=NAME_WORLDS, make=NameModel),
}


def main(most: Annotated[int, typer.Option(metavar="STATES", help="Leave out larger worlds.")] = sys.maxsize) -> None:
    """Visit every state of the protocol's models."""
    sys.exit("\n".join([*visited(most), *unneeded()]) or None)


def visited(most: int) -> Iterator[str]:
    """Visit the models of so many states at most; yield what is wrong."""
    models = {f"{title}, {name}": (kind, world) for title, kind in KINDS.items() for name, world in kind.worlds.items()}
    for name, (kind, world) in models.items():
        if world.states > most:
            continue
        began = time.perf_counter()
        explored = kind.make(kind.rules(), world).search()
        seconds = time.perf_counter() - began
        if explored.broken:
            sys.stdout.writelines(f"{line}\n" for line in explored.trace)
            yield f"{name}: {explored.broken} is broken"
        elif explored.states != world.states:
            yield f"{name}: {explored.states:,} states, and there were {world.states}"
        figures = f"{explored.states:,} states, {explored.transitions:,} transitions, depth {explored.depth}"
        sys.stdout.write(f"{name}: {figures}, {seconds:.1f} s\n")
        sys.stdout.flush()


def unneeded() -> Iterator[str]:
    """Leave out one rule at a time; yield those without which another promise is broken than theirs, or none."""
    count = 0
    for title, kind in KINDS.items():
        first = next(iter(kind.worlds))
        for rule, (promise, world) in broken_without(kind.rules).items():
            count += 1
            broken = kind.make(kind.rules(**{rule: False}), kind.worlds[world or first]).search().broken
            if broken != promise:
                yield f"{title}, without {rule}: {broken or 'nothing'} is broken, and {promise} was"
    sys.stdout.write(f"left out each of {count} rules\n")


if __name__ == "__main__":
    typer.run(main)
