from datetime import timedelta

import pytest

from dueline.core.queue_settings import Backoff, RetryPolicy
from dueline.worker.delivery import DeadLettered, Discard, Retry, RetryLater, verdict_on
from dueline.worker.events import error_event
from tests.work import a_connection

SETTINGS = a_connection().settings


def verdict(error, *, attempt=1, settings=SETTINGS, held=0.0):
    return verdict_on(error, attempt=attempt, settings=settings, jitter=1.0, held=held)


def test_an_error_is_tried_again_as_the_policy_says():
    assert verdict(TypeError("no")) == RetryLater(seconds=1, error="TypeError", reason="no")
    assert verdict(Retry(reason="busy")) == RetryLater(seconds=1, error="Retry", reason="busy")


@pytest.mark.parametrize(("delay", "seconds"), [(90, 90), (timedelta(minutes=2), 120), (0, 0), (0.4, 1), (1.4, 2)])
def test_a_handler_may_say_when_to_try_again(delay, seconds):
    assert verdict(Retry(delay)).seconds == seconds


@pytest.mark.parametrize("delay", [-1, 42_601, timedelta(days=1), float("nan"), "5"])
def test_impossible_retry_delay_is_refused(delay):
    with pytest.raises(ValueError, match="it must be from 0 to 42600"):
        Retry(delay)


@pytest.mark.parametrize(("requests", "held"), [(7200, 35_400), (42_600, 0), (1, 42_599)])
def test_retry_delay_is_kept_whatever_longest_run_is(requests, held):
    settings = a_connection(longest_run=39_600).settings
    assert verdict(Retry(requests), settings=settings, held=held).seconds == requests


def test_retry_that_sqs_cannot_keep_is_dead():
    dead = verdict(Retry(7200, "busy"), held=35_400.5)
    why = "Retry requested 7200 s, of which 7199 are left: SQS hides a message for 43200 s in all from its receipt"
    assert dead == DeadLettered(error="Retry", reason=f"{why}, of which 600 are kept in reserve: busy")


@pytest.mark.parametrize(("held", "seconds"), [(42_599.0, 1), (42_600.0, 0), (50_000.0, 0)])
def test_policy_delay_ends_within_12_hours_of_receipt(held, seconds):
    policy = RetryPolicy(backoff=Backoff.CONSTANT, delay=3600, max_delay=3600)
    assert verdict(TypeError(), settings=a_connection(retry=policy).settings, held=held).seconds == seconds


class NotReady(Retry):
    def __init__(self, order):
        self.order = order


class Speechless(Exception):
    def __str__(self):
        return None


class Broken(Discard):
    def __str__(self):
        raise KeyError("message")


def test_retry_subclass_without_delay_follows_the_policy():
    assert verdict(NotReady(7)) == RetryLater(seconds=1, error="NotReady", reason="7")


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [(90.5, 91), (timedelta(minutes=2), 120), ("90", 1), (-1, 1), (float("nan"), 1), (None, 1)],
)
def test_unchecked_delay_is_used_if_it_is_valid(delay, seconds):
    error = NotReady(7)
    error.delay = delay
    assert verdict(error).seconds == seconds
    error.delay = float("inf")
    assert isinstance(verdict(error), DeadLettered)


class Guessing(Retry):
    """Has a delay that cannot be shown."""

    def __init__(self):
        """Call none of Retry's own."""

    @property
    def delay(self):
        raise KeyError("delay")


def test_unreadable_delay_follows_the_policy():
    assert verdict(Guessing()).seconds == 1


class Leaving(Exception):
    def __str__(self):
        raise SystemExit


def test_error_without_a_text_is_reported_by_its_type():
    assert verdict(Leaving()) == RetryLater(seconds=1, error="Leaving", reason="Leaving")
    assert verdict(Speechless()) == RetryLater(seconds=1, error="Speechless", reason="Speechless")
    assert verdict(Speechless(), attempt=3).reason == "attempt 3 of 3 failed: Speechless"
    assert verdict(Broken()) == DeadLettered(error="Broken", reason="Broken")
    assert error_event(Speechless(), queue="emails").reason == "Speechless: Speechless"


def test_what_is_discarded_is_dead_at_once_with_its_reason():
    assert verdict(Discard("no such user")) == DeadLettered(error="Discard", reason="no such user")


def test_after_the_last_attempt_a_job_is_dead():
    assert isinstance(verdict(TypeError("no"), attempt=2), RetryLater)
    assert verdict(TypeError("no"), attempt=3) == DeadLettered(error="TypeError", reason="attempt 3 of 3 failed: no")
    assert isinstance(verdict(Retry(5), attempt=3), DeadLettered)


def test_sqs_must_not_come_first_or_the_reason_is_lost():
    settings = a_connection(max_receives=2).settings
    assert isinstance(verdict(TypeError(), attempt=2, settings=settings), DeadLettered)
