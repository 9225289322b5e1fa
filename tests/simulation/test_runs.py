"""Histories that no one thought of: seeds, one after another."""

import pytest

from tests.simulation.run import first_failure, report_of

SEEDS = 300
HALVES = 2


@pytest.mark.parametrize("half", range(HALVES))
def test_no_seed_breaks_a_promise(half: int) -> None:
    broken = first_failure(range(half, SEEDS, HALVES))
    assert broken is None, report_of(broken)
