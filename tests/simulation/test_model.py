"""Every state of the models keeps every promise, in small worlds.

`python -m tests.simulation.model`, a part of `make soak`, visits all of them, and leaves out each rule.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.model.__main__ import FAR_RULES
from tests.simulation.model.jobs import (
    FAR_STATES,
    MODEL_STATES,
    ONE_OF_EACH,
    TWO_DELIVERIES,
    TWO_TICKS,
    AnyModel,
    Model,
    trace_of,
)
from tests.simulation.model.move import MoveRules
from tests.simulation.model.moves import SCENES, SINGLE_MOVE_STATES, SINGLY, MoveModel
from tests.simulation.model.name_worlds import NAME_WORLDS, NameModel
from tests.simulation.model.names import NameRules
from tests.simulation.model.producers import FAR, ONE_PAGE, SIZES, ProducerModel, ProducerRules
from tests.simulation.model.schedule_store import ScheduleRules
from tests.simulation.model.schedules import ONE_PLANNER, WORLDS, ScheduleModel
from tests.simulation.model.store import Rules, broken_without

MOVED = "sooner"
NAMES = ("keep dies|keep", "keep refused|replace delay", "Z cancel old|cancel|replace", "ttl reschedule|reschedule")
THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(Model(Rules(), TWO_DELIVERIES), id="two deliveries"),
        pytest.param(Model(Rules(), TWO_TICKS), id="two ticks", marks=THOROUGH),
        pytest.param(ProducerModel(ProducerRules(), SIZES[ONE_PAGE]), id="producers"),
        pytest.param(ProducerModel(ProducerRules(), SIZES[FAR]), id="producers of a far job", marks=THOROUGH),
        pytest.param(ScheduleModel(ScheduleRules(), WORLDS[ONE_PLANNER]), id="a schedule"),
        *(pytest.param(NameModel(NameRules(), NAME_WORLDS[world]), id=world) for world in NAMES),
    ],
)
def test_no_state_breaks_a_promise(model: AnyModel):
    explored = model.search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == model.states


@pytest.mark.parametrize("rule", ["", *FAR_RULES])
def test_only_states_of_far_jobs_without_a_rule_break_a_promise(rule: str):
    """Of one delivery and one tick: `make soak` visits two of each."""
    rules = replace(Rules(), **dict.fromkeys([rule] if rule else [], False))
    assert Model(rules, ONE_OF_EACH, is_far=True).search().broken == (broken_without(Rules)[rule] if rule else "")


def test_no_state_of_a_move_breaks_a_promise():
    explored = MoveModel(MoveRules(), SCENES[MOVED], at_once=SINGLY).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == SINGLE_MOVE_STATES[MOVED]


def test_docs_have_the_number_of_states():
    figures = [f"{MODEL_STATES:,} states", f"{len(broken_without(Rules))} rules"]
    figures += [f"{sum(each.states for each in SCENES.values()):,} states", f"{len(broken_without(MoveRules))} rules"]
    figures += [f"{len(broken_without(each))} rules" for each in (ProducerRules, ScheduleRules, NameRules)]
    figures += [f"{len(NAME_WORLDS)} worlds", f"{sum(each.states for each in NAME_WORLDS.values()):,} states"]
    states = [*FAR_STATES.values(), *(each.submitted_states for each in SCENES.values())]
    states += [each.states for worlds in (SIZES, SCENES, WORLDS) for each in worlds.values()]
    table = (Path(__file__).parent / "model" / "states.md").read_text()
    assert [f"{each:,}" for each in states if f"{each:,}" not in table] == []
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
