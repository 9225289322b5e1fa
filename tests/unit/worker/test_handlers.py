"""Handlers by kind: which one gets a job, how it is retried, and what is refused before a job comes."""

from datetime import timedelta

import pytest

from dueline import Retries
from dueline.core.queue_settings import Backoff, RetryPolicy
from dueline.worker.worker import Worker
from tests.builders import a_job
from tests.work import a_connection

POLICY = RetryPolicy(backoff=Backoff.CONSTANT, attempts=4, delay=30, max_delay=300)


async def later(job):
    """Does nothing."""


def handlers_of_kinds(*kinds):
    worker = Worker()
    for kind in kinds:
        worker.job("emails", kind=kind)(later)
    return worker._chosen(None)[0]


def kind_of(handler):
    return "no handler" if handler is None else handler.kind


@pytest.mark.parametrize(
    ("kinds", "of_jobs"),
    [
        (["welcome", "digest", None], {"welcome": "welcome", "digest": "digest", "other": None, None: None}),
        (["welcome"], {"welcome": "welcome", "other": "no handler", None: "no handler"}),
        ([None], {"welcome": None, None: None}),
    ],
)
def test_job_goes_to_the_handler_of_its_kind(kinds, of_jobs):
    handlers = handlers_of_kinds(*kinds)
    assert {kind: kind_of(handlers.find(a_job(kind=kind))) for kind in of_jobs} == of_jobs


def test_message_without_a_job_needs_a_handler_for_all():
    assert handlers_of_kinds("welcome").find(None) is None
    assert kind_of(handlers_of_kinds("welcome", None).find(None)) is None


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"kind": "welcome"}, "kind 'welcome' of queue 'emails' has a handler already"),
        ({}, "queue 'emails' has a handler already"),
        ({"kind": "Größe"}, "kind is 'Größe': it must have 1 to 64 of a-z"),
        ({"kind": "digest", "concurrency": 5}, "concurrency is 5: queue 'emails' has 4 already"),
        ({"kind": "digest", "retry": 3}, r"retry is 3: it must be Retries\(…\)"),
    ],
)
def test_handler_that_cannot_be_is_refused(options, wrong):
    worker = Worker()
    worker.job("emails", kind="welcome", concurrency=4)(later)
    worker.job("emails")(later)
    with pytest.raises(ValueError, match=wrong):
        worker.job("emails", **options)(later)


# Retries beside a handler


def delays(retries, *, attempts=6, jitter=1.0):
    return [retries.delay_after(attempt, policy=POLICY, jitter=jitter) for attempt in range(1, attempts)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [30, 30, 30, 30, 30]),
        ({"first": 5}, [5, 5, 5, 5, 5]),
        ({"most": 20}, [20, 20, 20, 20, 20]),
        ({"factor": 2}, [30, 60, 120, 240, 300]),
        ({"first": 400, "factor": 2}, [400, 400, 400, 400, 400]),
        ({"first": 2, "factor": 1.5, "most": 6}, [2, 3, 5, 6, 6]),
        ({"first": timedelta(minutes=1), "factor": 10, "most": timedelta(hours=1)}, [60, 600, 3600, 3600, 3600]),
    ],
)
def test_default_is_the_queues_policy(options, expected):
    assert delays(Retries(**options)) == expected


def test_growing_delays_have_jitter():
    assert delays(Retries(first=2, factor=2, most=600), jitter=0.0) == [2, 2, 4, 8, 16]
    assert delays(Retries(first=7, factor=1), jitter=0.0) == [7, 7, 7, 7, 7]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"attempts": 0}, "attempts is 0: it must be a whole number from 1 to 1000"),
        ({"attempts": True}, "attempts is True"),
        ({"first": 0}, "first is 0: it must be from 1 to 42600 seconds, or a timedelta"),
        ({"most": timedelta(hours=12)}, "most is 43200 s: it must be from 1 to 42600 seconds"),
        ({"factor": 0.5}, "factor is 0.5: it must be a number from 1 to 100"),
        ({"factor": float("nan")}, "factor is nan"),
        ({"first": 60, "most": 30}, "most is 30 seconds: it must be at least first, which is 60"),
    ],
)
def test_impossible_retries_are_refused(options, wrong):
    with pytest.raises(ValueError, match=wrong):
        Retries(**options)


def test_more_attempts_than_sqs_allows_end_the_start():
    worker = Worker()
    worker.job("emails", kind="welcome", retry=Retries(attempts=11))(later)
    (handlers,) = worker._chosen(None)
    handlers.check(a_connection(max_receives=11).settings)
    with pytest.raises(ValueError, match=r"attempts is 11 for .* kind 'welcome' .* max_receives, which is 10"):
        handlers.check(a_connection(max_receives=10).settings)


def test_delays_longer_than_sqs_keeps_a_message_end_the_start():
    """SQS would delete the job without a dead letter."""
    worker = Worker()
    worker.job("emails", retry=Retries(attempts=6, first=36_000))(later)
    (handlers,) = worker._chosen(None)
    handlers.check(a_connection(retry=POLICY, message_retention=180_001).settings)
    with pytest.raises(ValueError, match=r"delays of 6 attempts .* are 180000 seconds at least: .*retention_days"):
        handlers.check(a_connection(retry=POLICY, message_retention=180_000).settings)
