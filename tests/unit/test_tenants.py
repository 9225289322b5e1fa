"""A tenant is the message group of its jobs on their queue, whichever way they go there."""

import pytest

from dueline.errors import InvalidJob
from dueline.model.job import Job
from dueline.model.request import Request
from tests.builders import NOW, a_job
from tests.system import System

AN_HOUR = 3600


def submit(system, **request):
    (job,) = system.submit(Request(payload={}, **request))
    assert isinstance(job, Job), job
    return job


def groups(queue):
    return [delivery.message.group for delivery in queue.deliveries]


@pytest.mark.parametrize("tenant", ["acme", None])
def test_a_direct_job_is_of_its_tenants_group(tenant):
    system = System()
    submit(system, tenant=tenant)
    assert groups(system.queues["emails"]) == [tenant]


@pytest.mark.parametrize("tenant", ["acme", None])
def test_a_job_by_the_table_is_of_its_queues_group_inbound_and_of_its_tenants_on_its_queue(tenant):
    system = System()
    system.breakers["emails"].trip()
    submit(system, delay=AN_HOUR, tenant=tenant)
    system.ingest()
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert groups(system.inbound) == ["emails"]
    assert groups(system.queues["emails"]) == [tenant]


def test_a_late_job_is_of_its_tenants_group():
    system = System()
    job = submit(system, delay=AN_HOUR, tenant="acme")
    system.clock.sleep(AN_HOUR)
    system.tick()
    system.ingest()
    assert groups(system.queues[job.id.queue]) == ["acme"]


def test_a_job_that_is_sent_again_under_its_key_keeps_its_tenant():
    system = System()
    submit(system, tenant="acme", key="one", delay=AN_HOUR)
    assert submit(system, tenant="acme", key="one").tenant == "acme"


@pytest.mark.parametrize("tenant", ["", "x" * 129, "a b", "naïve", "a\n"])
def test_a_tenant_that_sqs_would_refuse_is_refused_with_what_is_allowed(tenant):
    (error,) = System().submit(Request(payload={}, tenant=tenant))
    assert isinstance(error, InvalidJob)
    assert f"tenant is {tenant!r}" in str(error)
    assert "1 to 128 letters, digits and punctuation" in str(error)


@pytest.mark.parametrize("tenant", ["x", "x" * 128, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"])
def test_whatever_sqs_takes_may_be_a_tenant(tenant):
    assert a_job(tenant=tenant, due=NOW).tenant == tenant
