"""What becomes of a job that a direct client schedules by settings that it still knows for up to a minute.

Preflight has looked by then, and a deployment gives up what it is for. What was deployed stays:
the tick's schedule, and the SQS queue.
"""

from dataclasses import replace
from functools import partial

import pytest

from dueline.core import instant, rows
from dueline.core.job import Job, Partition, State
from dueline.core.request import Request
from dueline.operations.stranded import REMOVED, DeploymentShape, StrandedItems
from tests.builders import NOW, a_queue
from tests.system import System

OLD = DeploymentShape(partitions=2, priorities=2, message_days=4)
GIVEN_UP = Partition(queue="emails", number=1)
AN_HOUR = 3600


@pytest.fixture
def system():
    return System(a_queue(partitions=2, priorities=2))


def given_up(system, *, partition=0, **change):
    """Let preflight look, then a client schedule by the old settings; return its job, once those are the new ones."""
    queue = system.settings["emails"]
    assert strands(system).lost(OLD, replace(OLD, **change)) == []
    requests = Request(payload={}, delay=AN_HOUR, priority=queue.priorities)
    jobs = (system.submit(requests)[0] for _ in range(100))
    job = next(each for each in jobs if isinstance(each, Job) and each.id.partition.number == partition)
    system.settings["emails"] = replace(queue, **change)
    return job


def strands(system):
    level = partial(system.stores.level, "emails")
    dead_letters = partial(level, 5)
    queue, table, now = system.settings["emails"], system.table, system.clock.now()
    return StrandedItems(queue=queue, table=table, level=level, dead_letters=dead_letters, now=now)


def come_due(system):
    for seconds in (0, AN_HOUR):
        system.clock.sleep(seconds)
        system.tick()
        system.tick(GIVEN_UP)


def test_job_in_a_removed_partition_is_dispatched(system):
    come_due(system)
    job = given_up(system, partition=1, partitions=1)
    assert system.status_of(job.id).state is State.SCHEDULED
    come_due(system)
    assert job.id in system.arrived(priority=2)


def test_removed_levels_jobs_stay_in_its_sqs_queue(system):
    """`dueline doctor` reports it, by `queue_left`."""
    come_due(system)
    job = given_up(system, priorities=1)
    come_due(system)
    assert job.id in system.arrived(priority=2)
    assert strands(system).lost(OLD, REMOVED) != []


def test_removed_queues_jobs_are_parked_once_its_queue_is_gone(system):
    come_due(system)
    assert strands(system).lost(OLD, REMOVED) == []
    first, second = (system.schedule(delay) for delay in (AN_HOUR, 2 * AN_HOUR))
    del system.settings["emails"]
    come_due(system)
    assert first.id in system.arrived()
    system.stores.levels["emails", 1].gone = True
    come_due(system)
    assert second.id in system.parked()


def test_queue_with_jobs_in_removed_partitions_is_not_deleted(system):
    come_due(system)
    assert strands(system).lost(OLD, REMOVED) == []
    job = given_up(system, partition=1, partitions=1)
    system.table.write([rows.cancellation_row(each, at=NOW) for each in system.in_the_table()])
    (answer,) = strands(system).lost(OLD, REMOVED)
    assert answer == f"1 job, due until {instant.text(job.id.due)} at the latest"


def test_of_partitions_that_a_queue_never_had_none_is_queried(system, monkeypatch):
    come_due(system)
    queried, page = set(), system.table.page
    monkeypatch.setattr(
        system.table, "page", lambda partition, **more: queried.add(partition.number) or page(partition, **more)
    )
    system.settings["emails"] = a_queue()
    assert strands(system).lost(OLD, REMOVED) == []
    assert queried == {0, 1}
