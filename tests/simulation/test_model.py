"""Every state of the models keeps every promise; without any one of their rules, the search finds a promise broken."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.simulation.model.move import MoveRules
from tests.simulation.model.moves import MOVE_STATES, SCENES, MoveModel
from tests.simulation.model.states import MODEL_STATES, Model, story
from tests.simulation.model.store import Rules

BROKEN_WITHOUT = {
    "rows_then_fence": "never lost",
    "late_jobs_are_sent": "never lost",
    "unwritten_is_not_acknowledged": "never lost",
    "unread_fence_is_unknown": "never lost",
    "fence_is_consistent_for_ingest": "never lost",
    "fence_then_cancellations": "exact cancel",
    "unread_cancellation_is_unknown": "exact cancel",
    "sent_then_noted": "never lost",
    "late_path_leaves_a_note": "at least once",
    "lease_keeps_others_out": "at least once",
    "fence_then_pages": "exact cancel",
    "fence_never_falls": "never lost",
    "pages_are_consistent": "never lost",
    "settled_is_carried_over_pages": "exact cancel",
    "sent_then_checkpointed": "never lost",
    "checkpoint_is_conditional": "exact cancel",
    "cursor_is_a_key": "never lost",
    "cursor_stops_before_the_unsent": "never lost",
    "cursor_rests_on_jobs": "exact cancel",
    "cursor_ends_where_reading_ended": "never lost",
    "cancellation_then_fence": "exact cancel",
    "unread_fence_promises_nothing": "exact cancel",
    "fence_is_consistent_for_cancels": "exact cancel",
    "promise_is_noted": "exact cancel",
}
MOVE_BROKEN_WITHOUT = {
    "not_cancelled_then_submitted": "never neither",
    "not_submitted_then_cancelled": "never both",
    "moves_before_the_fence_alone": "never both",
    "moves_what_is_not_cancelled": "exact cancel",
    "moved_is_seen_cancelled": "exact cancel",
    "intent_then_move": "never neither",
    "unanswered_move_is_unknown": "no second job",
    "caller_looks_who_was_quicker": "no second job",
    "looks_again_before_409": "no second job",
    "undone_intent_is_carried_out": "never neither",
    "refused_intent_is_dropped": "never both",
    "moved_intent_is_kept": "never neither",
    "moved_row_is_written": "never neither",
    "unread_look_is_unknown": "never neither",
    "moved_job_is_seen_to": "never neither",
}


def test_no_state_breaks_a_promise_and_every_state_is_visited():
    explored = Model(Rules()).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == MODEL_STATES


@pytest.mark.parametrize("scene", SCENES)
def test_no_state_of_a_move_breaks_a_promise_and_every_state_is_visited(scene):
    explored = MoveModel(MoveRules(), SCENES[scene]).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == MOVE_STATES[scene]


FIGURES = [f"{MODEL_STATES:,} states", f"{len(fields(Rules))} rules"]
FIGURES += [f"{sum(MOVE_STATES.values()):,} states", f"{len(MoveRules.own())} rules"]
FIGURES += [f"{states:,}" for states in MOVE_STATES.values()]


@pytest.mark.parametrize("figure", FIGURES)
def test_the_docs_tell_how_much_was_explored(figure):
    assert figure in (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()


@pytest.mark.parametrize("rule", [rule.name for rule in fields(Rules)])
def test_without_any_one_rule_the_search_finds_a_promise_broken(rule):
    assert Model(replace(Rules(), **{rule: False})).search().broken == BROKEN_WITHOUT[rule]


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("rule", MoveRules.own())
def test_without_any_one_rule_of_moves_the_search_finds_a_promise_broken(rule, scene):
    rules = replace(MoveRules(), **{rule: False})
    assert MoveModel(rules, SCENES[scene]).search().broken == MOVE_BROKEN_WITHOUT[rule]


def test_how_a_promise_was_broken_is_told_step_by_step():
    model = Model(Rules(settled_is_carried_over_pages=False))
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
