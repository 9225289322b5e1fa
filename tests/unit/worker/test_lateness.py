"""The lateness of a job by a clock that is behind AWS's own, by an unknown part of a known bound."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.worker.delivery import Lateness
from tests.builders import NOW

SECONDS = st.integers(0, 10_000_000).map(lambda micros: micros / 1e6)


def lateness_of(late, *, behind, by, held=False):
    """Return what a clock `by` seconds behind AWS's, known to be `behind` at most, makes of a job that is so late."""
    now = NOW + timedelta(seconds=late) - timedelta(seconds=by)
    return Lateness.of(NOW, now=now, behind=behind, held=held)


@given(late=SECONDS, behind=SECONDS, part=st.floats(0, 1), held=st.booleans())
def test_true_lateness_is_within_its_bounds(late, behind, part, held):
    got = lateness_of(late, behind=behind, by=behind * part, held=held)
    assert 0 <= got.at_least <= late + 1e-5
    assert late - 1e-5 <= got.at_most <= late + behind + 1e-5


def test_clock_that_is_behind_reports_no_early_job():
    got = lateness_of(0.03, behind=0.9, by=0.24)
    assert (got.at_least, got.at_most) == (0.0, pytest.approx(0.69))


def test_held_job_is_never_early():
    got = lateness_of(0.03, behind=0.9, by=5.0, held=True)
    assert (got.at_least, got.at_most) == (0.0, 0.0)


def test_a_job_that_was_early_for_certain_is_reported_as_early():
    got = lateness_of(-2.0, behind=0.5, by=0.25)
    assert (got.at_least, got.at_most) == (pytest.approx(-1.75), pytest.approx(-1.75))


def test_while_the_time_is_not_known_there_is_no_most():
    assert lateness_of(1.0, behind=math.inf, by=0) == Lateness(at_least=1.0, at_most=math.inf)
    assert lateness_of(-1.0, behind=math.inf, by=0) == Lateness(at_least=0.0, at_most=math.inf)
