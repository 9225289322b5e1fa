"""Dynein's protocol, over the ports in memory and on DynamoDB's: Dueline is measured against it, so it must work."""

from datetime import timedelta

import pytest

from bench.dynein import DynamoClaims, Dynein
from dueline.aws.dynamodb import DynamoTable
from dueline.core import rows
from dueline.testing import MemoryQueue, VirtualClock
from tests.builders import EMAILS, NOW, a_job

JOBS = 20


pytestmark = pytest.mark.parametrize("engine", ["dynalite"], indirect=True)


@pytest.fixture(params=[False, True], ids=["as coded", "batched"])
def dynein(engine, request):
    name, clock = engine.new_table(), VirtualClock(NOW)
    inbound = MemoryQueue(name="inbound", clock=clock)
    return Dynein(
        table=DynamoTable(engine.dynamodb, name, state=name),
        claims=DynamoClaims(engine.dynamodb, name),
        inbound=inbound,
        queue=MemoryQueue(name="emails", clock=clock),
        clock=clock,
        batched=request.param,
    )


def delivered(dynein):
    return [delivery.message.job().id for delivery in dynein.queue.deliveries]


def all_rows(dynein):
    return dynein.table.page(EMAILS, after=rows.FIRST, until="~").rows


def test_due_job_is_sent_once_and_its_row_removed(dynein):
    jobs = [a_job(due=NOW + timedelta(seconds=number)) for number in range(JOBS)]
    dynein.submit(jobs)
    while dynein.ingest():
        pass
    assert dynein.inbound.depth().waiting + dynein.inbound.depth().in_flight == 0
    assert len(all_rows(dynein)) == JOBS
    dynein.clock.sleep(9)
    assert dynein.poll(EMAILS) == (10, False)
    assert delivered(dynein) == [job.id for job in jobs[:10]]
    dynein.clock.sleep(60)
    assert dynein.poll(EMAILS) == (10, False)
    assert sorted(map(str, delivered(dynein))) == sorted(str(job.id) for job in jobs)
    assert not all_rows(dynein)
