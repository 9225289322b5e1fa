"""Histories that no one thought of: seeds, one after another, for as long as there is time."""

import time
from itertools import count

import pytest

from tests.simulation.run import first_failure, report_of

SECONDS = 60
LEAST = 500
HALVES = 2


@pytest.mark.parametrize("half", range(HALVES))
def test_no_seed_breaks_a_promise(half: int) -> None:
    deadline = time.monotonic() + SECONDS / HALVES
    for seed in count(half, HALVES):
        if seed >= LEAST and time.monotonic() > deadline:
            break
        broken = first_failure([seed])
        assert broken is None, report_of(seed)
