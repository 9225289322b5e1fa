"""Every state of the model keeps every promise; without any one of its rules, the search finds a promise broken."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

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


def test_no_state_breaks_a_promise_and_every_state_is_visited():
    explored = Model(Rules()).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == MODEL_STATES


@pytest.mark.parametrize("figure", [f"{MODEL_STATES:,} states", f"{len(fields(Rules))} rules"])
def test_the_docs_tell_how_much_was_explored(figure):
    assert figure in (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()


@pytest.mark.parametrize("rule", [rule.name for rule in fields(Rules)])
def test_without_any_one_rule_the_search_finds_a_promise_broken(rule):
    assert Model(replace(Rules(), **{rule: False})).search().broken == BROKEN_WITHOUT[rule]


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
