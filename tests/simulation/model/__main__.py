"""Visit every state of the model, or find how a promise is broken without one of its rules."""

import argparse
import sys
import time
from dataclasses import fields, replace

from tests.simulation.model.states import Model, story
from tests.simulation.model.store import Rules


def main() -> None:
    parser = argparse.ArgumentParser(description="Visit every state of the protocol's model.")
    parser.add_argument("--without", metavar="RULE", choices=[rule.name for rule in fields(Rules)])
    rule = parser.parse_args().without
    model = Model(replace(Rules(), **{rule: False}) if rule else Rules())
    began = time.perf_counter()
    explored = model.search()
    seconds = time.perf_counter() - began
    if explored.broken:
        sys.stdout.writelines(f"{line}\n" for line in story(model, explored))
    figures = f"{explored.states:,} states, {explored.transitions:,} transitions, depth {explored.depth}"
    sys.stdout.write(f"{figures}, {seconds:.1f} s\n")


if __name__ == "__main__":
    main()
