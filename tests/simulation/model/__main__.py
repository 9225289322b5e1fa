"""Visit every state of the models, and check that a promise is broken without any one of their rules.

Exits with 1 when a promise is broken, when there are other states than there were, or when a rule is not needed.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tests.simulation.model.jobs import FAR_STATES, ONE_OF_EACH, AnyModel, Model, trace_of
from tests.simulation.model.move import MoveRules
from tests.simulation.model.moves import SCENES, MoveModel, SubmittedMoveModel, scenes_of
from tests.simulation.model.name_worlds import NAME_WORLDS, NameModel
from tests.simulation.model.names import NameRules
from tests.simulation.model.producers import FAR, ONE_PAGE, SIZES, ProducerModel, ProducerRules
from tests.simulation.model.schedule_store import ScheduleRules
from tests.simulation.model.schedules import WORLDS, ScheduleModel, world_without
from tests.simulation.model.store import Rules, broken_without, worlds_without

TWO_JOBS, SUBMITTED, MOVED, SCHEDULE = "two jobs", "a job submitted", "a job moved", "a schedule"
NAME = "a name"
FAR_RULES = ("far_row_is_signed_in_time", "fence_is_made_before_it_is_signed", "exact_is_signed_in_time")
OF_JOBS, OF_PRODUCERS = broken_without(Rules), broken_without(ProducerRules)
OF_MOVES, OF_SCHEDULES = broken_without(MoveRules), broken_without(ScheduleRules)
OF_NAMES = broken_without(NameRules)
RULES = OF_JOBS | OF_PRODUCERS | OF_MOVES | OF_SCHEDULES | OF_NAMES


def main() -> None:
    parser = argparse.ArgumentParser(description="Visit every state of the protocol's models.")
    parser.add_argument("--without", metavar="RULE", choices=list(RULES), help="leave out one rule of the protocol")
    parser.add_argument("--most", metavar="STATES", type=int, help="leave out worlds of more states")
    options = parser.parse_args()
    most = options.most or sys.maxsize
    chosen = {name: model for name, model in models().items() if model.states is None or model.states <= most}
    wrong = list(visited(models_without(options.without))) if options.without else [*visited(chosen), *unneeded()]
    sys.exit("\n".join(wrong) or None)


def visited(models: Mapping[str, AnyModel]) -> Iterator[str]:
    """Visit models; yield what is wrong."""
    for name, model in models.items():
        began = time.perf_counter()
        explored = model.search()
        seconds = time.perf_counter() - began
        if explored.broken:
            sys.stdout.writelines(f"{line}\n" for line in trace_of(model, explored))
            yield f"{name}: {explored.broken} is broken"
        elif explored.states != model.states:
            yield f"{name}: {explored.states:,} states, and there were {model.states}"
        figures = f"{explored.states:,} states, {explored.transitions:,} transitions, depth {explored.depth}"
        sys.stdout.write(f"{name}: {figures}, {seconds:.1f} s\n")
        sys.stdout.flush()


def unneeded() -> Iterator[str]:
    """Leave out one rule at a time; yield those without which another promise is broken than theirs, or none."""
    for rule, promise in RULES.items():
        for name, model in models_without(rule).items():
            if (broken := model.search().broken) != promise:
                yield f"{name}, without {rule}: {broken or 'nothing'} is broken, and {promise} was"
    sys.stdout.write(f"left out each of {len(RULES)} rules\n")


def models() -> dict[str, AnyModel]:
    """Return the models of all worlds, with every rule."""
    all_models: dict[str, AnyModel] = {TWO_JOBS: Model(Rules())}
    for crowd in FAR_STATES:
        all_models[f"{TWO_JOBS}, far at first, {crowd.ticks} ticks"] = Model(Rules(), crowd, is_far=True)
    for name, size in SIZES.items():
        all_models[f"{SUBMITTED}, {name}"] = ProducerModel(ProducerRules(), size)
    for name, scene in SCENES.items():
        all_models[f"{MOVED} {name}"] = MoveModel(MoveRules(), scene)
        all_models[f"{SUBMITTED} and moved {name}"] = SubmittedMoveModel(MoveRules(), scene)
    for name, world in WORLDS.items():
        all_models[f"{SCHEDULE} {name}"] = ScheduleModel(ScheduleRules(), world)
    for name, calls in NAME_WORLDS.items():
        all_models[f"{NAME}, {name}"] = NameModel(NameRules(), calls)
    return all_models


def models_without(rule: str) -> Mapping[str, AnyModel]:
    """Return the models, without a rule, of worlds that it is a rule of, the smallest of them."""
    left_out = {rule: False}
    if rule in FAR_RULES:
        return {TWO_JOBS: Model(replace(Rules(), **left_out), ONE_OF_EACH, is_far=True)}
    if rule in OF_JOBS:
        return {TWO_JOBS: Model(replace(Rules(), **left_out))}
    if rule in OF_PRODUCERS:
        world = FAR if rule == "far_put_is_signed_in_time" else ONE_PAGE
        return {f"{SUBMITTED}, {world}": ProducerModel(replace(ProducerRules(), **left_out), SIZES[world])}
    if rule in OF_NAMES:
        name = worlds_without(NameRules)[rule]
        return {f"{NAME}, {name}": NameModel(replace(NameRules(), **left_out), NAME_WORLDS[name])}
    if rule in OF_SCHEDULES:
        name = world_without(rule)
        return {f"{SCHEDULE} {name}": ScheduleModel(replace(ScheduleRules(), **left_out), WORLDS[name])}
    rules = replace(MoveRules(), **left_out)
    return {f"{MOVED} {name}": MoveModel(rules, scene) for name, scene in scenes_of(rule).items()}


if __name__ == "__main__":
    main()
