"""Visit every state of the models, and see that a promise is broken without any one of their rules.

Exits with 1 when a promise is broken, when there are other states than there were, or when a rule is not needed.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import fields, replace

from tests.simulation.model.move import MoveRules
from tests.simulation.model.moves import MOVE_STATES, MoveModel, scenes_of
from tests.simulation.model.states import MODEL_STATES, Model, story
from tests.simulation.model.store import Rules
from tests.simulation.model.without import BROKEN_WITHOUT, MOVE_BROKEN_WITHOUT

TWO_JOBS = "two jobs"
STATES = {TWO_JOBS: MODEL_STATES} | {f"a job moved {name}": states for name, states in MOVE_STATES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Visit every state of the protocol's models.")
    parser.add_argument("--without", metavar="RULE", choices=[rule.name for rule in fields(MoveRules)])
    rule = parser.parse_args().without
    wrong = list(visited(rule)) if rule else [*visited(None), *unneeded()]
    sys.exit("\n".join(wrong) or None)


def visited(without: str | None) -> Iterator[str]:
    """Visit the models, or, without a rule, those that it is a rule of; yield what is wrong."""
    for name, model in models(without).items():
        began = time.perf_counter()
        explored = model.search()
        seconds = time.perf_counter() - began
        if explored.broken:
            sys.stdout.writelines(f"{line}\n" for line in story(model, explored))
            yield f"{name}: {explored.broken} is broken"
        elif explored.states != STATES[name]:
            yield f"{name}: {explored.states:,} states, and there were {STATES[name]:,}"
        figures = f"{explored.states:,} states, {explored.transitions:,} transitions, depth {explored.depth}"
        sys.stdout.write(f"{name}: {figures}, {seconds:.1f} s\n")


def unneeded() -> Iterator[str]:
    """Leave out one rule at a time; yield those without which another promise is broken than theirs, or none."""
    rules = BROKEN_WITHOUT | MOVE_BROKEN_WITHOUT
    for rule, promise in rules.items():
        for name, model in models(rule).items():
            if (broken := model.search().broken) != promise:
                yield f"{name}, without {rule}: {broken or 'nothing'} is broken, and {promise} was"
    sys.stdout.write(f"left out each of {len(rules)} rules\n")


def models(without: str | None) -> dict[str, Model | MoveModel]:
    """Return the models, or, without a rule, those that it is a rule of."""
    left_out = {without: False} if without else {}
    if without in BROKEN_WITHOUT:
        return {TWO_JOBS: Model(replace(Rules(), **left_out))}
    rules = replace(MoveRules(), **left_out)
    moves = {f"a job moved {name}": MoveModel(rules, scene) for name, scene in scenes_of(without).items()}
    return moves if without else {TWO_JOBS: Model(Rules())} | moves


if __name__ == "__main__":
    main()
