"""What becomes of a failed attempt: retries, dead letters; and how late a job was."""

import math
import sys
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core.message import Message
from dueline.core.ports import BatchFailure
from dueline.core.queue_settings import MAX_HIDDEN_SECONDS, Backoff, RetryPolicy
from dueline.errors import Unavailable
from dueline.worker.delivery import (
    DeadLettered,
    Discard,
    Retries,
    Retry,
    RetryLater,
    error_event,
    lateness_of,
    verdict_on,
)
from tests.builders import NOW, a_job
from tests.work import SharedQueue, a_connection, a_received_message

SETTINGS = a_connection().settings


def verdict(error, *, attempt=1, settings=SETTINGS, held=0.0):
    return verdict_on(error, attempt=attempt, settings=settings, jitter=1.0, held=held)


class Later(Retry):
    """Its constructor is not called."""

    def __init__(self, **own):
        self.__dict__.update(own)


def test_error_is_retried_by_the_policy():
    assert verdict(TypeError("no"), attempt=2) == RetryLater(seconds=1, error="TypeError", reason="no")
    assert verdict(Retry(reason="busy")) == RetryLater(seconds=1, error="Retry", reason="busy")
    assert verdict(Later()) == RetryLater(seconds=1, error="Later", reason="Later")
    in_an_hour = type("InAnHour", (Retry,), {"delay": timedelta(hours=1)})
    assert verdict(in_an_hour()).seconds == 3600
    assert verdict(in_an_hour(5)).seconds == 5


def test_job_is_dead_by_discard_or_after_its_last_attempt():
    assert verdict(Discard("no such user")) == DeadLettered(error="Discard", reason="no such user")
    assert verdict(TypeError("no"), attempt=3) == DeadLettered(error="TypeError", reason="attempt 3 of 3 failed: no")
    assert isinstance(verdict(Retry(5), attempt=3), DeadLettered)


@pytest.mark.parametrize(("delay", "seconds"), [(90, 90), (timedelta(minutes=2), 120), (0, 0), (0.4, 1), (1.4, 2)])
@pytest.mark.parametrize("kind", [Retry, Later])
def test_a_handler_may_say_when_to_try_again(kind, delay, seconds):
    assert verdict(kind(delay=delay)).seconds == seconds


@pytest.mark.parametrize("delay", [-1, 42_601, timedelta(days=1), float("nan"), "5"])
def test_impossible_retry_delay_is_refused(delay):
    with pytest.raises(ValueError, match="it must be from 0 to 42600"):
        Retry(delay)


@pytest.mark.parametrize(("requests", "held"), [(7200, 35_400), (42_600, 0), (1, 42_599)])
def test_retry_delay_may_exceed_longest_run(requests, held):
    settings = a_connection(longest_run=39_600).settings
    assert verdict(Retry(requests), settings=settings, held=held).seconds == requests


def test_retry_that_sqs_cannot_keep_is_dead():
    dead = verdict(Retry(7200, "busy"), held=35_400.5)
    why = "Retry requested 7200 s, of which 7199 are left: SQS hides a message for 43200 s in all from its receipt"
    assert dead == DeadLettered(error="Retry", reason=f"{why}, less a reserve: busy")


@pytest.mark.parametrize(("held", "seconds"), [(42_599.0, 1), (42_600.0, 0), (50_000.0, 0)])
def test_policy_delay_ends_within_12_hours(held, seconds):
    policy = RetryPolicy(backoff=Backoff.CONSTANT, delay=3600, max_delay=3600)
    assert verdict(TypeError(), settings=a_connection(retry=policy).settings, held=held).seconds == seconds


SILENCES = {"returns": lambda _: None, "raises": lambda _: {}["message"], "exits": lambda _: sys.exit()}


@pytest.mark.parametrize("says", SILENCES.values(), ids=SILENCES)
def test_silent_error_is_named_by_its_type(says):
    silent, discard = (type("Silent", (base,), {"__str__": says})() for base in (Exception, Discard))
    assert verdict(silent) == RetryLater(seconds=1, error="Silent", reason="Silent")
    assert verdict(silent, attempt=3).reason == "attempt 3 of 3 failed: Silent"
    assert verdict(discard) == DeadLettered(error="Silent", reason="Silent")
    assert error_event(silent, queue="emails").reason == "Silent: Silent"


def test_handlers_own_retries_come_before_the_policy():
    own = {"settings": SETTINGS, "jitter": 1.0, "retries": Retries(attempts=5, first=7, factor=1)}
    assert verdict_on(TypeError("no"), attempt=4, **own) == RetryLater(seconds=7, error="TypeError", reason="no")
    assert verdict_on(TypeError("no"), attempt=5, **own).reason == "attempt 5 of 5 failed: no"


# Policies


@pytest.mark.parametrize(
    ("options", "jitter", "expected"),
    [
        ({}, 1.0, [30, 60, 90, 120, 150, 300, 600, 1200, 2400]),
        ({"max_delay": 500}, 1.0, [30, 60, 90, 120, 150, 300, 500, 500, 500]),
        ({}, 0.0, [30, 60, 90, 120, 150, 150, 300, 600, 1200]),
        ({"backoff": Backoff.CONSTANT, "attempts": 4}, 0.0, [30, 30, 30]),
        ({"backoff": Backoff.LINEAR, "attempts": 8, "delay": 10}, 1.0, [10, 20, 30, 40, 50, 60, 70]),
        ({"backoff": Backoff.EXPONENTIAL, "attempts": 5, "delay": 2}, 1.0, [2, 4, 8, 16]),
        ({"backoff": Backoff.EXPONENTIAL, "attempts": 4, "delay": 2}, 0.0, [2, 2, 4]),
    ],
    ids=str,
)
def test_delays_grow_by_the_policy(options, jitter, expected):
    """Only exponential ones have jitter."""
    policy = RetryPolicy(**options)
    assert [policy.delay_after(attempt, jitter=jitter) for attempt in range(1, policy.attempts)] == expected


def test_handlers_attempts_extend_its_queues_policy():
    policy, more = RetryPolicy(backoff=Backoff.LINEAR, attempts=3, delay=10), Retries(attempts=8)
    assert [more.delay_after(each, policy=policy, jitter=1) for each in range(1, 8)] == [10, 20, 30, 40, 50, 60, 70]


@given(
    backoff=st.sampled_from(Backoff),
    attempt=st.integers(1, 1000),
    delay=st.integers(1, MAX_HIDDEN_SECONDS),
    more=st.integers(0, MAX_HIDDEN_SECONDS),
    jitter=st.floats(0, 1),
)
def test_delay_keeps_its_limits(backoff, attempt, delay, more, jitter):
    policy = RetryPolicy(backoff=backoff, attempts=1000, delay=delay, max_delay=delay + more)
    assert 1 <= policy.delay_after(attempt, jitter=jitter) <= policy.max_delay


# Dead letters


DEAD = DeadLettered(error="TypeError", reason="attempt 3 of 3 failed: no")
FAILURE = {"dueline-error": "TypeError", "dueline-attempts": "3", "dueline-reason": "attempt 3 of 3 failed: no"}


def test_dead_letter_has_its_failure():
    job, dead_letter_queue = a_job(tenant="acme"), SharedQueue()
    a_received_message(job, receives=3).send_dead_letter(DEAD, dead_letter_queue)
    sent = Message.of(job)
    assert dead_letter_queue.messages == [Message(body=sent.body, attributes={**sent.attributes, **FAILURE})]
    assert dead_letter_queue.messages[0].job() == job


@pytest.mark.parametrize("text", ["\x1b[31mno such customer\x1b[0m", "\0", "\ufffe", "\ud800"])
def test_any_error_text_makes_a_dead_letter(text):
    dead_letter_queue = SharedQueue()
    a_received_message(a_job()).send_dead_letter(DeadLettered(error=f"Odd{text}", reason=text), dead_letter_queue)
    (dead_letter,) = dead_letter_queue.messages
    assert dead_letter.attributes["dueline-reason"] == text.encode("unicode_escape").decode()


def refusing(*, final):
    """Return a queue that refuses dead letters that say why, for good or for now."""
    queue, refused = SharedQueue(), [BatchFailure(index=0, reason="InvalidParameterValue", final=final)]
    send = queue.send
    queue.send = lambda messages: refused if "dueline-error" in messages[0].attributes else send(messages)
    return queue


def test_refused_dead_letter_goes_as_it_came():
    dead_letter_queue, received = refusing(final=True), a_received_message(a_job())
    received.send_dead_letter(DEAD, dead_letter_queue)
    assert dead_letter_queue.messages == [received.arrival.message]
    with pytest.raises(Unavailable, match="InvalidParameterValue"):
        received.send_dead_letter(DEAD, refusing(final=False))


# Lateness, by a clock that is behind by an unknown part of a known bound


SECONDS = st.integers(0, 10_000_000).map(lambda micros: micros / 1e6)


@given(late=SECONDS, behind=SECONDS, part=st.floats(0, 1))
def test_job_was_late_by_at_least_its_lateness(late, behind, part):
    now = NOW + timedelta(seconds=late - behind * part)
    assert 0 <= lateness_of(NOW, now=now, behind=behind) <= late + 1e-5


@pytest.mark.parametrize(("behind", "lateness"), [(0.5, -1.5), (2.5, 0.0), (math.inf, 0.0)])
def test_certainly_early_job_is_reported(behind, lateness):
    assert lateness_of(NOW, now=NOW - timedelta(seconds=2), behind=behind) == lateness
