import ast
from pathlib import Path

import pytest

from tests.simulation.lateness import HERDS, SENDS_KEPT_BACK, STORIES, TIMEOUT, Story, table, told, worst

ROOT = Path(__file__).parents[2]
ROUNDED_UP = 1.0  # to SQS's second: less than this is on time
NOTHING, MISSED, TWICE = (STORIES[name] for name in ("nothing", "a firing is missed", "a firing comes twice at once"))
DEAD = STORIES["a tick dies just after taking the lease"]
DEAD_AND_MISSED = STORIES["a tick dies just after taking the lease, and a firing is missed"]


def assigned(file: str, name: str) -> str:
    """Return what a module assigns to a name, as its source spells it."""
    (value,) = [
        node.value
        for node in ast.parse((ROOT / file).read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]
    return ast.unparse(value)


@pytest.mark.thorough
def test_the_table_in_the_docs_is_the_one_that_is_computed() -> None:
    _, shown, _ = (ROOT / "docs/reliability.md").read_text().replace("<!-- /", "<!-- ").split("<!-- lateness -->\n")
    assert shown.splitlines() == list(table())


@pytest.mark.parametrize(
    ("story", "to_spare"),
    [(NOTHING, 120), (TWICE, 120), (MISSED, 60), (DEAD, 60)],
    ids=["nothing fails", "a firing comes twice", "a firing is missed", "a tick dies with the lease"],
)
def test_every_job_is_handed_over_in_time_after_one_failure(story: Story, to_spare: int) -> None:
    assert worst(story).lateness < ROUNDED_UP
    assert worst(story).spare > to_spare


def test_a_dead_tick_and_a_missed_firing_make_no_job_later_than_60_s() -> None:
    assert worst(DEAD_AND_MISSED).lateness <= 60


def test_a_dead_tick_and_a_missed_firing_make_no_job_late_as_the_next_tick_waits_for_the_lease() -> None:
    assert worst(DEAD_AND_MISSED).lateness < ROUNDED_UP


@pytest.mark.parametrize("name", HERDS)
def test_a_long_tick_goes_on_so_that_what_is_due_after_its_herd_is_on_time(name: str) -> None:
    assert worst(STORIES[name], after_the_herd=True).lateness < ROUNDED_UP


def test_a_firing_that_comes_twice_repeats_no_job() -> None:
    assert not any(run.repeats for run in told(TWICE))


def test_a_tick_that_dies_before_its_checkpoint_repeats_what_it_sent_and_one_that_dies_after_it_nothing() -> None:
    before, after = (STORIES[f"a tick dies {when} its first checkpoint"] for when in ("before", "after"))
    assert all(run.repeats for run in told(before))
    assert not any(run.repeats for run in told(after))


def test_three_missed_firings_make_jobs_late_by_as_much_as_the_lookahead_leaves_out() -> None:
    assert worst(STORIES["three firings are missed"]).lateness == pytest.approx(5 * 60 - 240, abs=0.01)


def test_firings_come_as_close_and_as_far_apart_as_two_minutes_allow() -> None:
    apart = [run.all.firings[1][0] for run in told(NOTHING)]
    assert (min(apart), max(apart)) == (0.001, 119.999)


def test_the_time_limit_is_that_of_the_deployed_function() -> None:
    assert assigned("infra/constructs/tick.py", "_TIMEOUT") == str(TIMEOUT)
    assert assigned("functions/tick.py", "AFTER_THE_LAST_SEND") == f"{SENDS_KEPT_BACK} * PERIODS.longest_send"
