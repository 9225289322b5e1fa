"""What is told of a queue as a whole."""

from datetime import timedelta

import pytest

from dueline.errors import QueueNotFound
from dueline.lookup.control import Control
from dueline.model.job import Partition
from dueline.model.rate import Rate
from dueline.model.request import Request
from dueline.operate.control import pause, set_rate
from dueline.ports import Depth
from tests.builders import EMAILS, NOW, a_job, a_message, a_queue
from tests.system import System

RATE_SET = "2026-11-21T07:05:00.000Z"


def due_in(seconds, partition=EMAILS):
    return a_job(due=NOW + timedelta(seconds=seconds), partition=partition)


def test_of_an_untouched_queue_there_is_nothing_to_tell():
    told = System().overview()
    assert (told.scheduled, told.more_scheduled, told.next_due, told.fence_age, told.dead) == (0, False, None, None, 0)
    assert told.depth == Depth(waiting=0, in_flight=0, delayed=0)


def test_what_is_scheduled_is_counted_and_the_first_of_it_is_next():
    system, jobs = System(), [due_in(seconds) for seconds in (3600, 4000, 5000)]
    system.put(*jobs)
    system.cancel(jobs[0].id)
    told = system.overview()
    assert (told.scheduled, told.more_scheduled, told.next_due) == (2, False, jobs[1].id.due)


def test_a_job_that_is_overdue_and_not_handed_over_is_next():
    system, overdue = System(), due_in(-60)
    system.put(overdue)
    assert system.overview().next_due == overdue.id.due


@pytest.mark.parametrize(("jobs", "told"), [(1000, (1000, False)), (1001, (1000, True)), (3000, (1000, True))])
def test_more_than_1000_are_not_counted_and_that_is_told(jobs, told):
    system = System()
    system.put(*[due_in(3600 + number) for number in range(jobs)])
    overview = system.overview()
    assert (overview.scheduled, overview.more_scheduled) == told


def test_a_count_costs_no_more_than_1000_jobs_do():
    system = System(page_rows=100)
    system.put(*[due_in(3600 + number) for number in range(5000)])
    read = []
    system.wire.around = lambda call: (read.append(call.name), call.do(*call.args))[1]
    system.overview()
    assert 0 < read.count("table.page") <= 11


def test_the_age_of_the_fence_is_that_of_the_partition_whose_tick_is_longest_ago():
    other = Partition(queue="emails", number=1)
    system = System(a_queue(partitions=2))
    system.tick(EMAILS)
    assert system.overview().fence_age is None
    system.clock.sleep(60)
    system.tick(other)
    system.clock.sleep(5)
    assert system.overview().fence_age == 65


def test_a_fence_that_a_faster_clock_raised_is_not_younger_than_now():
    system = System()
    system.table.take(EMAILS, owner="me", now="1", lease="2", fence="2027-01-01T00:00:00.000Z")
    assert system.overview().fence_age == 0


def test_what_waits_in_the_queue_and_what_is_dead_is_told():
    system = System()
    for delay in (0, 0, 500):
        system.schedule(delay)
    system.dead_letters.send([a_message()])
    told = system.overview()
    assert told.depth == Depth(waiting=2, in_flight=0, delayed=1)
    assert told.dead == 1


def test_a_queues_depth_is_that_of_all_its_levels_and_that_of_each_is_told():
    system = System(a_queue(priorities=2))
    requests = [Request(payload={}, delay=delay, priority=priority) for delay, priority in ((0, 1), (0, 2), (500, 2))]
    system.submit(*requests)
    told = system.overview()
    assert told.levels == (Depth(waiting=1, in_flight=0, delayed=0), Depth(waiting=1, in_flight=0, delayed=1))
    assert told.depth == Depth(waiting=2, in_flight=0, delayed=1)


def test_whether_its_workers_are_paused_and_how_fast_they_may_go_is_told():
    system = System()
    assert system.overview().control == Control()
    pause("emails", table=system.table, now=NOW)
    set_rate("emails", Rate(jobs=90, seconds=60), table=system.table, now=NOW)
    assert system.overview().control == Control(paused=True, rate=Rate(jobs=90, seconds=60), rate_set=RATE_SET)


def test_all_levels_and_the_dead_letter_queue_are_asked_at_once():
    system, asked = System(a_queue(priorities=3)), []

    def spread(call, items):
        asked.append(len(given := list(items)))
        return map(call, given)

    system.spread = spread
    system.overview()
    assert asked[-1] == 4


def test_a_level_that_is_not_on_sqs_is_not_found():
    system = System(a_queue(priorities=2))
    system.stores.level("emails", 2).gone = True
    with pytest.raises(
        QueueNotFound, match="priority 2 of queue 'emails' has no SQS queue: it is not deployed yet, or was deleted"
    ):
        system.overview()


@pytest.mark.parametrize("name", ["emails", "dead_letters"])
def test_a_queue_that_is_not_on_sqs_is_not_found(name):
    system = System()
    {**system.queues, "dead_letters": system.dead_letters}[name].gone = True
    with pytest.raises(QueueNotFound, match="'emails' has no SQS queue: it is not deployed yet, or was deleted"):
        system.overview()
