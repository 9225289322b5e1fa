"""Priorities and tenants: which SQS queue and which message group a job reaches."""

import json

import pytest

from dueline.core.message import job_batches
from dueline.core.request import Request
from dueline.errors import InvalidJob, QueueNotFound
from dueline.functions.http.requests import read_jobs
from tests.builders import a_queue, due_in
from tests.system import System
from tests.wire import failing

AN_HOUR = 3600


def test_earliest_due_is_sent_first():
    late, soon = [due_in(n, priority=1) for n in range(10, 20)], [due_in(n, priority=3) for n in range(10)]
    assert list(job_batches([*late, *soon])) == [soon, late]


# What is requested


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        *(({"priority": each}, "from 1 to 3, the priorities of queue 'emails'") for each in (0, -1, 4, 10**200)),
        *(
            ({"tenant": each}, "1 to 128 letters, digits and punctuation")
            for each in ("", "x" * 129, "a b", "naïve", "a\n")
        ),
        *(({"call": each}, "1 to 255 printable ASCII characters") for each in ("", "x" * 256, "naïve", "a\nb", "\x7f")),
    ],
)
def test_bad_field_is_refused_at_once(wrong, reason):
    system = System(a_queue(priorities=3))
    system.wire.around = failing(AssertionError("nothing is to be requested"))
    error = system.refused(Request(payload={}, **wrong))
    [(name, value)] = wrong.items()
    assert isinstance(error, InvalidJob)
    assert f"{name.replace('call', 'idempotency_key')} is {value!r}"[:100] in str(error)
    assert reason in str(error)


def test_job_of_a_missing_level_is_not_found():
    system = System(a_queue(priorities=3))
    system.stores.level("emails", 3).gone = True
    error = system.refused(Request(payload={}, priority=3))
    assert isinstance(error, QueueNotFound)
    assert "priority 3 of queue 'emails' has no SQS queue: it is not deployed yet" in str(error)


@pytest.mark.parametrize("priority", ["2", 1.5, True, None, [], {}])
def test_priority_that_is_no_integer_is_refused(priority):
    with pytest.raises(InvalidJob) as refusal:
        read_jobs(json.dumps({"payload": 1, "priority": priority}))
    assert str(refusal.value).startswith(f"priority is {json.dumps(priority)}: ")
    assert "valid integer" in str(refusal.value)


# Tenants


@pytest.mark.parametrize("delay", [0, AN_HOUR])
def test_job_is_grouped_by_tenant(system, delay):
    system.submit(Request(payload={}, delay=delay, tenant="acme"))
    system.clock.sleep(delay)
    system.tick()
    assert [each.message.group for each in system.queues["emails"].deliveries] == ["acme"]
