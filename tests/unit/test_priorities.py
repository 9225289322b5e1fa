"""Priorities and tenants: which SQS queue and which message group a job reaches."""

import json

import pytest

from dueline.core.job import MAX_PRIORITY, StoredJob
from dueline.core.message import PRIORITY, Message, job_batches
from dueline.core.request import Request
from dueline.errors import InvalidJob, QueueNotFound
from dueline.functions.http.requests import read_jobs
from tests.builders import a_job, a_message, a_queue, due_in
from tests.system import System

AN_HOUR = 3600


def a_system(*, priorities=3, **settings):
    return System(a_queue(priorities=priorities, **settings))


def submit(system, **request):
    (job,) = system.submit(Request(payload={}, **request))
    assert isinstance(job, StoredJob), job
    return job


def refused(system, **request):
    (error,) = system.submit(Request(payload={}, **request))
    assert not isinstance(error, StoredJob), error
    return error


def arrived(system, *, levels=MAX_PRIORITY):
    """Return what is in a queue by priority, empty ones left out."""
    result = {priority: system.arrived(priority=priority) for priority in range(1, levels + 1)}
    return {priority: ids for priority, ids in result.items() if ids}


def test_earliest_due_is_sent_first():
    late, soon = [due_in(n, priority=1) for n in range(10, 20)], [due_in(n, priority=3) for n in range(10)]
    assert list(job_batches([*late, *soon])) == [soon, late]


# What is requested


@pytest.mark.parametrize(
    ("priority", "priorities", "allowed"),
    [(each, 3, "from 1 to 3, the priorities") for each in (0, -1, 4, 10**200)] + [(2, 1, "1, the only priority")],
)
def test_unknown_priority_names_those_allowed(priority, priorities, allowed):
    system = a_system(priorities=priorities)
    error = refused(system, priority=priority)
    assert isinstance(error, InvalidJob)
    assert f"priority is {str(priority)[:100]}: it must be {allowed} of queue 'emails'" in str(error)
    assert arrived(system) == {}


def test_job_of_a_missing_level_is_not_found():
    system = a_system()
    system.stores.level("emails", 3).gone = True
    error = refused(system, priority=3)
    assert isinstance(error, QueueNotFound)
    assert "priority 3 of queue 'emails' has no SQS queue: it is not deployed yet" in str(error)


@pytest.mark.parametrize("priority", ["2", 1.5, True, None, [], {}])
def test_priority_that_is_no_integer_is_refused(priority):
    with pytest.raises(InvalidJob) as refusal:
        read_jobs(json.dumps({"payload": 1, "priority": priority}))
    assert str(refusal.value).startswith(f"priority is {json.dumps(priority)}: ")
    assert "valid integer" in str(refusal.value)


# What carries it


@pytest.mark.parametrize("text", ["", "0", "6", "-2", "2.0", " 2", "02", "²", "٢", "high", "2" * 5000])
def test_bad_priority_of_a_message_is_named(text):
    attributes = {**Message.of(a_job()).attributes, PRIORITY: text}
    with pytest.raises(InvalidJob, match=f"attribute {PRIORITY} is .* it must be from 1 to 5"):
        a_message(attributes=attributes).job()


# Tenants


@pytest.mark.parametrize("delay", [0, AN_HOUR])
def test_job_is_grouped_by_tenant(system, delay):
    submit(system, delay=delay, tenant="acme")
    system.clock.sleep(delay)
    system.tick()
    assert [each.message.group for each in system.queues["emails"].deliveries] == ["acme"]


@pytest.mark.parametrize("tenant", ["", "x" * 129, "a b", "naïve", "a\n"])
def test_bad_tenant_names_what_is_allowed(tenant):
    (error,) = System().submit(Request(payload={}, tenant=tenant))
    assert isinstance(error, InvalidJob)
    assert f"tenant is {tenant!r}" in str(error)
    assert "1 to 128 letters, digits and punctuation" in str(error)
