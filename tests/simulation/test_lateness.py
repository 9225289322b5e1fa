"""The table in docs/reliability.md is the one that is computed; `make soak-short` computes the slow rows, too."""

from pathlib import Path

import pytest

from tests.simulation.lateness import HEADING, SCENARIOS, SENDS_KEPT_BACK, TIMEOUT, results_of, row_of

ROOT = Path(__file__).parents[2]
_, TABLE, _ = (ROOT / "docs/reliability.md").read_text().replace("<!-- /", "<!-- ").split("<!-- lateness -->\n")
TWICE, DEAD = "a firing comes twice at once", "a tick dies just after taking the lease"
QUICK = ["nothing", "a firing is missed", "three firings are missed", TWICE, DEAD, f"{DEAD}, and a firing is missed"]
SLOW = [pytest.param(name, marks=pytest.mark.thorough) for name in SCENARIOS if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_docs_have_the_worst_lateness(name: str) -> None:
    assert row_of(name) in TABLE.splitlines()


def test_docs_have_no_other_scenario() -> None:
    assert TABLE.count("\n") == len(HEADING) + len(SCENARIOS)


def test_a_firing_that_comes_twice_repeats_no_job() -> None:
    assert not any(run.repeats for run in results_of(SCENARIOS[TWICE]))


def test_tick_that_dies_repeats_only_what_it_did_not_checkpoint() -> None:
    before, after = (SCENARIOS[f"a tick dies {when} its first checkpoint"] for when in ("before", "after"))
    assert all(run.repeats for run in results_of(before))
    assert not any(run.repeats for run in results_of(after))


def test_the_time_limit_is_that_of_the_deployed_function() -> None:
    function, construct = (ROOT / "dueline" / file for file in ("functions/tick.py", "cdk/constructs/tick.py"))
    assert f"\n_TIMEOUT = {TIMEOUT}\n" in construct.read_text()
    assert f"\nAFTER_THE_LAST_SEND = {SENDS_KEPT_BACK} * PERIODS.longest_send\n" in function.read_text()
