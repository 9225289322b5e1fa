from pathlib import Path

import pytest

from tests.acceptance.inbox import percentile
from tests.simulation.lateness import (
    AT_ONCE,
    SCENARIOS,
    SENDS_KEPT_BACK,
    SWEPT,
    TIMEOUT,
    Scenario,
    flow,
    results_of,
    table,
    worst,
)

ROOT = Path(__file__).parents[2]
NOTHING, MISSED, TWICE = (SCENARIOS[name] for name in ("nothing", "a firing is missed", "a firing comes twice at once"))
DEAD = SCENARIOS["a tick dies just after taking the lease"]
DEAD_AND_MISSED = SCENARIOS["a tick dies just after taking the lease, and a firing is missed"]


@pytest.mark.thorough
def test_the_table_in_the_docs_is_the_one_that_is_computed() -> None:
    _, shown, _ = (ROOT / "docs/reliability.md").read_text().replace("<!-- /", "<!-- ").split("<!-- lateness -->\n")
    assert shown.splitlines() == list(table())


@pytest.mark.parametrize("rate", [1, 20, 100, pytest.param(500, marks=pytest.mark.thorough)])
def test_job_reaches_a_plain_consumer_within_hundredths(rate: int) -> None:
    late = flow(rate)
    assert late[0] >= 0
    assert percentile(late, 50) <= 0.05
    # Of 500 a second, those of two minutes are more than a tick sweeps: the rest goes at once.
    assert percentile(late, 99) <= (0.09 if rate < 500 else AT_ONCE)


@pytest.mark.parametrize("scenario", [NOTHING, TWICE], ids=["nothing fails", "a firing comes twice"])
def test_usual_job_is_swept_in_time(scenario: Scenario) -> None:
    """Its tick began two periods before it is due at the latest, and took a second for its sweep."""
    assert worst(scenario) < SWEPT


@pytest.mark.parametrize("scenario", [MISSED, DEAD], ids=["a firing is missed", "a tick dies with the lease"])
def test_every_job_is_in_time_after_one_failure(scenario: Scenario) -> None:
    """There is a period left for a sweep; what is due within that goes at once."""
    assert worst(scenario) < AT_ONCE


def test_next_tick_waits_for_the_lease_of_a_dead_one() -> None:
    assert worst(DEAD_AND_MISSED) < AT_ONCE


def test_a_firing_that_comes_twice_repeats_no_job() -> None:
    assert not any(run.repeats for run in results_of(TWICE))


def test_tick_that_dies_repeats_only_what_it_did_not_checkpoint() -> None:
    before, after = (SCENARIOS[f"a tick dies {when} its first checkpoint"] for when in ("before", "after"))
    assert all(run.repeats for run in results_of(before))
    assert not any(run.repeats for run in results_of(after))


def test_three_missed_firings_delay_jobs_past_the_lookahead() -> None:
    assert worst(SCENARIOS["three firings are missed"]) == pytest.approx(5 * 60 - 240, abs=0.01)


def test_the_time_limit_is_that_of_the_deployed_function() -> None:
    function, construct = (ROOT / "dueline" / file for file in ("functions/tick.py", "cdk/constructs/tick.py"))
    assert f"\n_TIMEOUT = {TIMEOUT}\n" in construct.read_text()
    assert f"\nAFTER_THE_LAST_SEND = {SENDS_KEPT_BACK} * PERIODS.longest_send\n" in function.read_text()
