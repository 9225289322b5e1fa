"""A tenant is the message group of its jobs on their queue, whichever way they go there."""

import pytest

from dueline.core.job import Job
from dueline.core.request import Request
from dueline.errors import InvalidJob
from tests.system import System

AN_HOUR = 3600


def submit(system, **request):
    (job,) = system.submit(Request(payload={}, **request))
    assert isinstance(job, Job), job
    return job


def groups(queue):
    return [delivery.message.group for delivery in queue.deliveries]


@pytest.mark.parametrize("tenant", ["acme", None])
def test_direct_job_is_of_its_tenants_group(tenant):
    system = System()
    submit(system, tenant=tenant)
    assert groups(system.queues["emails"]) == [tenant]


@pytest.mark.parametrize("tenant", ["acme", None])
def test_table_job_is_grouped_by_queue_then_by_tenant(tenant):
    system = System()
    system.breakers["emails"].trip()
    submit(system, delay=AN_HOUR, tenant=tenant)
    system.ingest()
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert groups(system.inbound) == ["emails"]
    assert groups(system.queues["emails"]) == [tenant]


@pytest.mark.parametrize("tenant", ["", "x" * 129, "a b", "naïve", "a\n"])
def test_bad_tenant_is_refused_with_what_is_allowed(tenant):
    (error,) = System().submit(Request(payload={}, tenant=tenant))
    assert isinstance(error, InvalidJob)
    assert f"tenant is {tenant!r}" in str(error)
    assert "1 to 128 letters, digits and punctuation" in str(error)
