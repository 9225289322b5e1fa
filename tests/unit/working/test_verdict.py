from datetime import timedelta

import pytest

from dueline.working.verdict import Again, Dead, Discard, Retry, verdict_on
from tests.work import a_place

SETTINGS = a_place().settings


def verdict(error, *, attempt=1, settings=SETTINGS):
    return verdict_on(error, attempt=attempt, settings=settings, jitter=1.0)


def test_an_error_is_tried_again_as_the_policy_says():
    assert verdict(TypeError("no")) == Again(seconds=1, error="TypeError", reason="no")


@pytest.mark.parametrize(("delay", "seconds"), [(90, 90), (timedelta(minutes=2), 120), (0, 0), (0.4, 0)])
def test_a_handler_may_say_when_to_try_again(delay, seconds):
    assert verdict(Retry(delay)).seconds == seconds


def test_a_retry_without_a_delay_waits_as_the_policy_says():
    assert verdict(Retry(reason="busy")) == Again(seconds=1, error="Retry", reason="busy")


@pytest.mark.parametrize("delay", [-1, 43_201, timedelta(days=1)])
def test_a_delay_that_sqs_does_not_know_is_refused_where_it_is_given(delay):
    with pytest.raises(ValueError, match="it must be from 0 to 43200"):
        Retry(delay)


def test_a_delay_ends_before_the_12_hours_of_a_receipt_are_over():
    settings = a_place(longest_run=3600).settings
    assert verdict(Retry(43_200), settings=settings).seconds == 43_200 - 3600


def test_what_is_discarded_is_dead_at_once_with_its_reason():
    assert verdict(Discard("no such user")) == Dead(error="Discard", reason="no such user")


def test_after_the_last_attempt_a_job_is_dead():
    assert isinstance(verdict(TypeError("no"), attempt=2), Again)
    assert verdict(TypeError("no"), attempt=3) == Dead(error="TypeError", reason="attempt 3 of 3 failed: no")
    assert isinstance(verdict(Retry(5), attempt=3), Dead)


def test_sqs_must_not_come_first_or_nobody_tells_the_reason():
    settings = a_place(max_receives=2).settings
    assert isinstance(verdict(TypeError(), attempt=2, settings=settings), Dead)
