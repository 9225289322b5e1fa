"""What becomes of a job that a direct client schedules by settings that it still knows for up to a minute.

The guard against stranded jobs has looked by then, and a deployment gives up what it is for. What was deployed stays:
the tick's schedule, and the SQS queue.
"""

from dataclasses import replace
from functools import partial

import pytest

from dueline.lookup.stranded import Shape, Strands
from dueline.model import instant, rows
from dueline.model.job import Job, Partition, State
from dueline.model.request import Request
from tests.builders import NOW, a_queue
from tests.system import System

OLD = Shape(partitions=2, priorities=2, message_days=4)
GIVEN_UP = Partition(queue="emails", number=1)
AN_HOUR = 3600


@pytest.fixture
def system():
    return System(a_queue(partitions=2, priorities=2))


def given_up(system, *, partition=0, **change):
    """Let the guard look, then a client schedule by the old settings; return its job, once those are the new ones."""
    queue = system.settings["emails"]
    assert strands(system).by_change(OLD, replace(OLD, **change)) == []
    asked = Request(payload={}, delay=AN_HOUR, priority=queue.priorities)
    jobs = (system.submit(asked)[0] for _ in range(100))
    job = next(each for each in jobs if isinstance(each, Job) and each.id.partition.number == partition)
    system.settings["emails"] = replace(queue, **change)
    return job


def strands(system):
    level = partial(system.stores.level, "emails")
    return Strands(queue=system.settings["emails"], table=system.table, level=level, now=system.clock.now())


def come_due(system):
    for seconds in (0, AN_HOUR):
        system.clock.sleep(seconds)
        system.tick()
        system.tick(GIVEN_UP)


def test_in_a_partition_that_goes_it_is_handed_over_by_the_tick_that_stays(system):
    come_due(system)
    job = given_up(system, partition=1, partitions=1)
    assert system.status_of(job.id).state is State.SCHEDULED
    come_due(system)
    assert job.id in system.arrived(priority=2)


def test_of_a_level_that_goes_it_lies_in_the_sqs_queue_that_stays_where_no_worker_looks(system):
    """`dueline doctor` tells of it, by `queue_left`."""
    come_due(system)
    job = given_up(system, priorities=1)
    come_due(system)
    assert job.id in system.arrived(priority=2)
    assert strands(system).by_deletion() != []


def test_of_a_queue_that_goes_it_comes_to_the_sqs_queue_that_stays_and_is_parked_once_that_is_gone(system):
    come_due(system)
    assert strands(system).by_deletion() == []
    first, second = (system.schedule(delay) for delay in (AN_HOUR, 2 * AN_HOUR))
    del system.settings["emails"]
    come_due(system)
    assert first.id in system.arrived()
    system.stores.levels["emails", 1].gone = True
    come_due(system)
    assert second.id in system.parked()


def test_a_queue_that_gave_up_partitions_is_not_deleted_while_a_job_is_in_one_of_them(system):
    come_due(system)
    assert strands(system).by_deletion() == []
    job = given_up(system, partition=1, partitions=1)
    system.table.write([rows.cancellation_row(each, at=NOW) for each in system.in_the_table()])
    (told,) = strands(system).by_deletion()
    assert told == f"1 job, due until {instant.text(job.id.due)} at the latest"


def test_of_partitions_that_a_queue_never_had_none_is_queried(system, monkeypatch):
    come_due(system)
    queried, page = set(), system.table.page
    monkeypatch.setattr(
        system.table, "page", lambda partition, **more: queried.add(partition.number) or page(partition, **more)
    )
    system.settings["emails"] = a_queue()
    assert strands(system).by_deletion() == []
    assert queried == {0, 1}
