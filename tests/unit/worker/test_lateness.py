"""The lateness of a job by a clock that is behind AWS's own, by an unknown part of a known bound."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.worker.received import Lateness
from tests.builders import NOW

SECONDS = st.integers(0, 10_000_000).map(lambda micros: micros / 1e6)


def lateness_of(late, *, behind, by, held=False):
    """Return what a clock `by` seconds behind AWS's, known to be `behind` at most, makes of a job that is so late."""
    now = NOW + timedelta(seconds=late) - timedelta(seconds=by)
    return Lateness.of(NOW, now=now, behind=behind, held=held)


@given(late=SECONDS, behind=SECONDS, part=st.floats(0, 1), held=st.booleans())
def test_the_true_lateness_is_between_what_is_told_and_none_is_told_as_early(late, behind, part, held):
    got = lateness_of(late, behind=behind, by=behind * part, held=held)
    assert 0 <= got.at_least <= late + 1e-5
    assert late - 1e-5 <= got.at_most <= late + behind + 1e-5


def test_a_job_that_a_worker_began_30_ms_late_is_not_told_as_early_by_a_clock_that_is_behind():
    got = lateness_of(0.03, behind=0.9, by=0.24)
    assert (got.at_least, got.at_most) == (0.0, pytest.approx(0.69))


def test_a_job_that_was_held_is_never_told_as_early_though_the_clock_was_set_meanwhile():
    got = lateness_of(0.03, behind=0.9, by=5.0, held=True)
    assert (got.at_least, got.at_most) == (0.0, 0.0)


def test_a_job_that_was_early_for_certain_is_told_as_early():
    got = lateness_of(-2.0, behind=0.5, by=0.25)
    assert (got.at_least, got.at_most) == (pytest.approx(-1.75), pytest.approx(-1.75))


def test_while_the_time_is_not_known_there_is_no_most():
    assert lateness_of(1.0, behind=math.inf, by=0) == Lateness(at_least=1.0, at_most=math.inf)
    assert lateness_of(-1.0, behind=math.inf, by=0) == Lateness(at_least=0.0, at_most=math.inf)
