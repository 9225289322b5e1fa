"""Every state of the models keeps every promise; without any one of their rules, the search finds a promise broken.

In small worlds: `python -m tests.simulation.model`, a part of `make soak`, visits all of them, and leaves out rules.
"""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.simulation.model.move import MoveRules
from tests.simulation.model.moves import MOVE_STATES, SCENES, SINGLE_MOVE_STATES, SINGLY, MoveModel
from tests.simulation.model.producer import ProducerRules
from tests.simulation.model.producers import ONE_PAGE, PRODUCER_STATES, SIZES, ProducerModel
from tests.simulation.model.schedules.rules import ScheduleRules
from tests.simulation.model.schedules.worlds import ONE_PLANNER, SCHEDULE_STATES, WORLDS, ScheduleModel, world_without
from tests.simulation.model.states import (
    CROWD_STATES,
    MODEL_STATES,
    ONE_OF_EACH,
    TWO_DELIVERIES,
    TWO_TICKS,
    Crowd,
    Model,
    crowd_without,
    story,
)
from tests.simulation.model.store import Rules
from tests.simulation.model.submitted_move import SUBMITTED_MOVE_STATES
from tests.simulation.model.without import (
    BROKEN_WITHOUT,
    MOVE_BROKEN_WITHOUT,
    PRODUCER_BROKEN_WITHOUT,
    SCHEDULE_BROKEN_WITHOUT,
)

MOVED = "sooner"


@pytest.mark.parametrize("crowd", [TWO_DELIVERIES, TWO_TICKS])
def test_no_state_breaks_a_promise_and_every_state_is_visited(crowd: Crowd):
    explored = Model(Rules(), crowd).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == CROWD_STATES[crowd]


def test_no_state_of_a_job_that_producers_submit_breaks_a_promise_and_every_state_is_visited():
    explored = ProducerModel(ProducerRules(), SIZES[ONE_PAGE]).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == PRODUCER_STATES[ONE_PAGE]


def test_no_state_of_a_move_breaks_a_promise_and_every_state_is_visited():
    explored = MoveModel(MoveRules(), SCENES[MOVED], at_once=SINGLY).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == SINGLE_MOVE_STATES[MOVED]


def test_no_state_of_a_schedule_breaks_a_promise_and_every_state_is_visited():
    explored = ScheduleModel(ScheduleRules(), WORLDS[ONE_PLANNER]).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == SCHEDULE_STATES[ONE_PLANNER]


def test_the_docs_tell_how_much_was_explored():
    figures = [f"{MODEL_STATES:,} states", f"{len(fields(Rules))} rules"]
    figures += [f"{sum(MOVE_STATES.values()):,} states", f"{len(MoveRules.own())} rules"]
    figures += [f"{len(ProducerRules.own())} rules", f"{len(ScheduleRules.names())} rules"]
    worlds = (PRODUCER_STATES, MOVE_STATES, SUBMITTED_MOVE_STATES, SCHEDULE_STATES)
    figures += [f"{states:,}" for world in worlds for states in world.values()]
    told = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    assert [figure for figure in figures if figure not in told] == []


@pytest.mark.thorough
def test_without_any_one_rule_the_search_finds_a_promise_broken():
    rules = {rule.name: replace(Rules(), **{rule.name: False}) for rule in fields(Rules)}
    found = {name: Model(left, crowd_without(name)).search().broken for name, left in rules.items()}
    assert found == BROKEN_WITHOUT


@pytest.mark.thorough
def test_without_any_one_rule_of_moves_the_search_finds_a_promise_broken():
    rules = {name: replace(MoveRules(), **{name: False}) for name in MoveRules.own()}
    found = {name: MoveModel(left, SCENES[MOVED], at_once=SINGLY).search().broken for name, left in rules.items()}
    assert found == MOVE_BROKEN_WITHOUT


@pytest.mark.thorough
def test_without_any_one_rule_of_producers_the_search_finds_a_promise_broken():
    rules = {name: replace(ProducerRules(), **{name: False}) for name in ProducerRules.own()}
    found = {name: ProducerModel(left, SIZES[ONE_PAGE]).search().broken for name, left in rules.items()}
    assert found == PRODUCER_BROKEN_WITHOUT


@pytest.mark.thorough
def test_without_any_one_rule_of_schedules_the_search_finds_a_promise_broken():
    rules = {name: replace(ScheduleRules(), **{name: False}) for name in ScheduleRules.names()}
    found = {name: ScheduleModel(left, WORLDS[world_without(name)]).search().broken for name, left in rules.items()}
    assert found == SCHEDULE_BROKEN_WITHOUT


def test_how_a_promise_was_broken_is_told_step_by_step():
    model = Model(Rules(settled_is_carried_over_pages=False), ONE_OF_EACH)
    assert story(model, model.search()) == [
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
