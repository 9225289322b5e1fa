"""Every state of the models keeps every promise, in small worlds.

`python -m tests.simulation.model`, a part of `make soak`, visits all of them, and leaves out each rule.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.model.__main__ import FAR_RULES
from tests.simulation.model.jobs import (
    CROWD_STATES,
    FAR_STATES,
    MODEL_STATES,
    ONE_OF_EACH,
    TWO_DELIVERIES,
    TWO_TICKS,
    Crowd,
    Model,
    trace_of,
)
from tests.simulation.model.move import MoveRules
from tests.simulation.model.moves import (
    MOVE_STATES,
    SCENES,
    SINGLE_MOVE_STATES,
    SINGLY,
    SUBMITTED_MOVE_STATES,
    MoveModel,
)
from tests.simulation.model.name_worlds import NAME_STATES, NAME_WORLDS, NameModel
from tests.simulation.model.names import NameRules
from tests.simulation.model.producers import FAR, ONE_PAGE, PRODUCER_STATES, SIZES, ProducerModel, ProducerRules
from tests.simulation.model.schedule_store import ScheduleRules
from tests.simulation.model.schedules import ONE_PLANNER, SCHEDULE_STATES, WORLDS, ScheduleModel
from tests.simulation.model.store import Rules, broken_without

MOVED = "sooner"


@pytest.mark.parametrize("crowd", [TWO_DELIVERIES, pytest.param(TWO_TICKS, marks=pytest.mark.thorough)])
def test_no_state_of_two_jobs_breaks_a_promise(crowd: Crowd):
    explored = Model(Rules(), crowd).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == CROWD_STATES[crowd]


@pytest.mark.parametrize("rule", ["", *FAR_RULES])
def test_only_states_of_far_jobs_without_a_rule_break_a_promise(rule: str):
    """Of one delivery and one tick: `make soak` visits two of each."""
    rules = replace(Rules(), **dict.fromkeys([rule] if rule else [], False))
    assert Model(rules, ONE_OF_EACH, is_far=True).search().broken == (broken_without(Rules)[rule] if rule else "")


@pytest.mark.parametrize("size", [ONE_PAGE, pytest.param(FAR, marks=pytest.mark.thorough)])
def test_no_state_of_producers_breaks_a_promise(size: str):
    explored = ProducerModel(ProducerRules(), SIZES[size]).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == PRODUCER_STATES[size]


def test_no_state_of_a_move_breaks_a_promise():
    explored = MoveModel(MoveRules(), SCENES[MOVED], at_once=SINGLY).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == SINGLE_MOVE_STATES[MOVED]


def test_no_state_of_a_schedule_breaks_a_promise():
    explored = ScheduleModel(ScheduleRules(), WORLDS[ONE_PLANNER]).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == SCHEDULE_STATES[ONE_PLANNER]


@pytest.mark.parametrize(
    "world",
    ["keep dies|keep", "keep refused|replace delay", "Z cancel old|cancel|replace", "ttl reschedule|reschedule"],
)
def test_no_state_of_a_name_breaks_a_promise(world: str):
    explored = NameModel(NameRules(), NAME_WORLDS[world]).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == NAME_STATES[world]


def test_docs_have_the_number_of_states():
    figures = [f"{MODEL_STATES:,} states", f"{len(broken_without(Rules))} rules"]
    figures += [f"{sum(MOVE_STATES.values()):,} states", f"{len(broken_without(MoveRules))} rules"]
    figures += [f"{len(broken_without(each))} rules" for each in (ProducerRules, ScheduleRules, NameRules)]
    figures += [f"{len(NAME_STATES)} worlds", f"{sum(NAME_STATES.values()):,} states"]
    worlds = (FAR_STATES, PRODUCER_STATES, MOVE_STATES, SUBMITTED_MOVE_STATES, SCHEDULE_STATES)
    table = (Path(__file__).parent / "model" / "states.md").read_text()
    assert [f"{states:,}" for world in worlds for states in world.values() if f"{states:,}" not in table] == []
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    assert [figure for figure in figures if figure not in page] == []


def test_trace_of_a_broken_promise():
    model = Model(Rules(settled_is_carried_over_pages=False), ONE_OF_EACH)
    assert trace_of(model, model.search()) == [
        "ingest receives ab",
        "ingest writes a",
        "cancel writes the cancellation",
        "cancel finds the fence before due, notes its promise, answers 200",
        "tick takes the lease, the fence is past due",
        "tick reads a#cancelled, and there may be more",
        "tick reads a#job, and there is no more",
        "tick sends a",
        "exact cancel: broken",
    ]
