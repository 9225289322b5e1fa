"""What is shown of a queue as a whole."""

from datetime import timedelta

import pytest

from dueline.core.job import Partition
from dueline.core.overview import Control
from dueline.core.ports import Depth
from dueline.core.queue_settings import Rate
from dueline.core.request import Request
from dueline.errors import QueueNotFound
from dueline.operations.control import pause, set_rate
from tests.builders import EMAILS, NOW, a_job, a_message, a_queue
from tests.system import System

RATE_SET = "2026-11-21T07:05:00.000Z"


def due_in(seconds, partition=EMAILS):
    return a_job(due=NOW + timedelta(seconds=seconds), partition=partition)


def test_scheduled_jobs_are_counted_and_the_first_is_next():
    system, jobs = System(), [due_in(seconds) for seconds in (3600, 4000, 5000)]
    system.put(*jobs)
    system.cancel(jobs[0].id)
    answer = system.overview()
    assert (answer.scheduled, answer.more_scheduled, answer.next_due) == (2, False, jobs[1].id.due)


@pytest.mark.parametrize(("jobs", "answer"), [(1000, (1000, False)), (1001, (1000, True)), (3000, (1000, True))])
def test_more_than_1000_are_not_counted_and_that_is_reported(jobs, answer):
    system = System()
    system.put(*[due_in(3600 + number) for number in range(jobs)])
    overview = system.overview()
    assert (overview.scheduled, overview.more_scheduled) == answer


def test_count_costs_no_more_than_1000_jobs_do():
    system = System(page_rows=100)
    system.put(*[due_in(3600 + number) for number in range(5000)])
    read = []
    system.wire.around = lambda call: (read.append(call.name), call.do(*call.args))[1]
    system.overview()
    assert 0 < read.count("table.page") <= 11


def test_fence_age_is_that_of_the_slowest_partition():
    other = Partition(queue="emails", number=1)
    system = System(a_queue(partitions=2))
    system.tick(EMAILS)
    assert system.overview().fence_age is None
    system.clock.sleep(60)
    system.tick(other)
    system.clock.sleep(5)
    assert system.overview().fence_age == 65


def test_fence_of_a_faster_clock_is_not_younger_than_now():
    system = System()
    system.table.acquire_lease(EMAILS, owner="me", now="1", lease="2", fence="2027-01-01T00:00:00.000Z")
    assert system.overview().fence_age == 0


def test_what_waits_in_the_queue_and_what_is_dead_is_reported():
    system = System()
    for delay in (0, 0, 500):
        system.schedule(delay)
    system.dead_letters.send([a_message()])
    answer = system.overview()
    assert answer.depth == Depth(waiting=2, in_flight=0, delayed=1)
    assert answer.dead == 1


def test_depth_is_that_of_all_levels_and_of_each():
    system = System(a_queue(priorities=2))
    requests = [Request(payload={}, delay=delay, priority=priority) for delay, priority in ((0, 1), (0, 2), (500, 2))]
    system.submit(*requests)
    answer = system.overview()
    assert answer.levels == (Depth(waiting=1, in_flight=0, delayed=0), Depth(waiting=1, in_flight=0, delayed=1))
    assert answer.depth == Depth(waiting=2, in_flight=0, delayed=1)


def test_pause_and_rate_are_shown():
    system = System()
    assert system.overview().control == Control()
    pause("emails", table=system.table, now=NOW)
    set_rate("emails", Rate(jobs=90, seconds=60), table=system.table, now=NOW)
    assert system.overview().control == Control(paused=True, rate=Rate(jobs=90, seconds=60), rate_set=RATE_SET)


def test_level_that_is_not_on_sqs_is_not_found():
    system = System(a_queue(priorities=2))
    system.stores.level("emails", 2).gone = True
    with pytest.raises(
        QueueNotFound, match="priority 2 of queue 'emails' has no SQS queue: it is not deployed yet, or was deleted"
    ):
        system.overview()


@pytest.mark.parametrize("name", ["emails", "dead_letters"])
def test_queue_that_is_not_on_sqs_is_not_found(name):
    system = System()
    {**system.queues, "dead_letters": system.dead_letters}[name].gone = True
    with pytest.raises(QueueNotFound, match="'emails' has no SQS queue: it is not deployed yet, or was deleted"):
        system.overview()
