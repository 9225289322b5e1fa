"""Visit every state of the models, or find how a promise is broken without one of their rules."""

import argparse
import sys
import time
from dataclasses import fields, replace

from tests.simulation.model.move import MoveRules
from tests.simulation.model.moves import SCENES, MoveModel
from tests.simulation.model.states import Model, story
from tests.simulation.model.store import Rules


def main() -> None:
    parser = argparse.ArgumentParser(description="Visit every state of the protocol's models.")
    parser.add_argument("--without", metavar="RULE", choices=[rule.name for rule in fields(MoveRules)])
    rule = parser.parse_args().without
    for name, model in models(rule).items():
        began = time.perf_counter()
        explored = model.search()
        seconds = time.perf_counter() - began
        if explored.broken:
            sys.stdout.writelines(f"{line}\n" for line in story(model, explored))
        figures = f"{explored.states:,} states, {explored.transitions:,} transitions, depth {explored.depth}"
        sys.stdout.write(f"{name}: {figures}, {seconds:.1f} s\n")


def models(without: str | None) -> dict[str, Model | MoveModel]:
    """Return the models, or, without a rule, those that it is a rule of."""
    left_out = {without: False} if without else {}
    of_two_jobs = {"two jobs": Model(replace(Rules(), **left_out))} if without not in MoveRules.own() else {}
    rules = replace(MoveRules(), **left_out)
    of_moves = {f"a job moved {name}": MoveModel(rules, scene) for name, scene in SCENES.items()}
    return of_two_jobs | (of_moves if without in (None, *MoveRules.own()) else {})


if __name__ == "__main__":
    main()
