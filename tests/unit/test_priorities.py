"""A job reaches the SQS queue of its priority, whichever way it goes there."""

import json
import math
from datetime import timedelta

import pytest

from dueline.errors import InvalidJob, QueueNotFound, Throttled
from dueline.model import rows
from dueline.model.job import MAX_PRIORITY, Job
from dueline.model.message import EXPIRES, ID, MAX_ATTRIBUTES, PRIORITY, REASON, TENANT, Message, job_batches
from dueline.model.request import Request
from dueline.protocol.dispatch import PAST_RETENTION
from dueline.protocol.keys import Repeat
from functions.http.bodies import read_jobs
from tests.builders import NOW, a_job, a_message, a_queue, an_id
from tests.system import System
from tests.wire import failing, meanwhile, on

AN_HOUR = 3600
EVERY_LEVEL = pytest.mark.parametrize("priority", [1, 2, 3])


def a_system(*, priorities=3, **settings):
    return System(a_queue(priorities=priorities, **settings))


def submit(system, **request):
    (job,) = system.submit(Request(payload={}, **request))
    assert isinstance(job, Job), job
    return job


def refused(system, **request):
    (error,) = system.submit(Request(payload={}, **request))
    assert not isinstance(error, Job), error
    return error


def arrived(system, *, levels=MAX_PRIORITY):
    """Return what is in a queue by priority, empty ones left out."""
    found = {priority: system.arrived(priority=priority) for priority in range(1, levels + 1)}
    return {priority: ids for priority, ids in found.items() if ids}


def told(system, priority):
    """Return the attribute of each message in a queue's SQS queue of a priority."""
    level = system.stores.level("emails", priority)
    return [delivery.message.attributes.get(PRIORITY) for delivery in level.deliveries]


def due_in(seconds, **overrides):
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def hand_over(system, *jobs):
    return system.dispatcher("emails").hand_over(jobs, until=math.inf)


# Every way


@EVERY_LEVEL
def test_a_direct_job_reaches_the_queue_of_its_priority(priority):
    system = a_system()
    job = submit(system, priority=priority)
    assert arrived(system) == {priority: [job.id]}


@EVERY_LEVEL
def test_a_job_by_the_table_reaches_the_queue_of_its_priority(priority):
    system = a_system()
    job = submit(system, priority=priority, delay=AN_HOUR)
    system.ingest()
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert arrived(system) == {priority: [job.id]}


@EVERY_LEVEL
def test_a_late_job_reaches_the_queue_of_its_priority(priority):
    system = a_system()
    job = submit(system, priority=priority, delay=AN_HOUR)
    system.clock.sleep(AN_HOUR)
    system.tick()
    system.ingest()
    assert arrived(system) == {priority: [job.id]}


@EVERY_LEVEL
def test_a_job_that_is_moved_keeps_its_priority(priority):
    system, job = a_system(), a_job(priority=priority)
    system.put(job)
    moved = system.reschedule(job.id, delay=2 * AN_HOUR)
    system.ingest()
    system.clock.sleep(2 * AN_HOUR)
    system.tick()
    assert arrived(system) == {priority: [moved]}


@EVERY_LEVEL
def test_a_move_that_ingest_carries_out_keeps_the_priority(priority):
    system, job = a_system(), a_job(priority=priority)
    system.put(job)
    system.wire.around = on("table.move", failing(Throttled("slow down")), times=1)
    with pytest.raises(Throttled):
        system.reschedule(job.id, delay=2 * AN_HOUR)
    system.ingest()
    system.clock.sleep(2 * AN_HOUR)
    system.tick()
    assert {level: len(ids) for level, ids in arrived(system).items()} == {priority: 1}


@EVERY_LEVEL
def test_what_was_parked_and_is_put_back_reaches_the_queue_of_its_priority(priority):
    system, job = a_system(), a_job(priority=priority)
    system.parking.park([job], reason="the queue is gone")
    system.ingest_message(system.dead_letters.deliveries[0].message)
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert arrived(system) == {priority: [job.id]}


def test_jobs_of_one_call_reach_the_queue_of_each_ones_priority():
    system = a_system()
    jobs = system.submit(*[Request(payload=n, priority=1 + n % 3) for n in range(30)])
    assert arrived(system) == {level: [job.id for job in jobs[level - 1 :: 3]] for level in (1, 2, 3)}


def test_a_job_that_asks_for_none_has_the_most_urgent_which_is_the_queues_own():
    system = a_system()
    job = submit(system)
    assert job.priority == 1
    assert [each.message.job().id for each in system.queues["emails"].deliveries] == [job.id]


# Batches


def test_a_batch_goes_to_one_level_and_is_as_full_as_it_can_be():
    system, sent = a_system(), []
    jobs = [due_in(n, priority=1 + n % 2) for n in range(40)]
    system.wire.around = lambda call: (sent.append((call.name, len(call.args[0]))), call.do(*call.args))[1]
    assert set(hand_over(system, *jobs).dispatched) == set(jobs)
    assert sorted(sent) == [("emails.send", 10)] * 2 + [("emails_p2.send", 10)] * 2


def test_the_earliest_due_is_sent_first_whatever_its_priority():
    jobs = [due_in(n, priority=3 if n < 10 else 1) for n in range(20)]
    assert [[job.id.due for job in batch] for batch in job_batches(jobs)] == [
        [job.id.due for job in jobs[:10]],
        [job.id.due for job in jobs[10:]],
    ]


def test_the_clock_is_read_for_each_levels_batch():
    system = a_system()
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(7)))
    hand_over(system, due_in(100, priority=1), due_in(101, priority=2))
    assert [each.message.delay for each in system.stores.level("emails", 2).deliveries] == [94]


def test_a_level_that_sqs_throttles_holds_up_its_own_jobs_alone():
    system, urgent, other = a_system(), due_in(2), due_in(1, priority=2)
    system.wire.around = on("emails_p2.send", failing(Throttled("slow down")))
    handed = hand_over(system, other, urgent)
    assert (handed.dispatched, handed.unfinished) == ((urgent,), (other,))


def test_a_level_that_is_gone_parks_its_own_jobs_alone_with_the_reason():
    system, urgent, other = a_system(), due_in(2), due_in(1, priority=2)
    system.stores.level("emails", 2).gone = True
    handed = hand_over(system, other, urgent)
    assert handed.dispatched == (urgent,)
    assert "emails_p2 does not exist" in system.dead_letters.deliveries[0].message.attributes[REASON]
    assert system.parked() == [other.id]


def test_a_job_of_each_level_past_its_retention_is_parked():
    system, jobs = a_system(), [due_in(-10, expires=NOW, priority=priority) for priority in (1, 2)]
    assert [each.reason for each in hand_over(system, *jobs).parked] == [PAST_RETENTION] * 2


# What is asked for


@pytest.mark.parametrize("priority", [0, -1, 4, 10**200])
def test_a_priority_that_the_queue_does_not_have_is_refused_with_what_it_has(priority):
    system = a_system()
    error = refused(system, priority=priority)
    assert isinstance(error, InvalidJob)
    assert f"priority is {str(priority)[:100]}: it must be from 1 to 3, the priorities of queue 'emails'" in str(error)
    assert arrived(system) == {}


def test_a_queue_has_one_priority_unless_it_says_otherwise():
    assert "from 1 to 1" in str(refused(System(), priority=2))


def test_a_direct_job_of_a_level_that_is_not_there_yet_is_not_found():
    system = a_system()
    system.stores.level("emails", 3).gone = True
    error = refused(system, priority=3)
    assert isinstance(error, QueueNotFound)
    assert "priority 3 of queue 'emails' has no SQS queue: it is not deployed yet" in str(error)


@pytest.mark.parametrize("delay", [0, AN_HOUR])
def test_a_repeat_under_a_key_answers_with_the_first_job_whatever_its_priority(delay):
    system = a_system()
    first = submit(system, key="one", delay=delay, priority=2)
    repeat = submit(system, key="one", delay=delay, priority=3)
    assert isinstance(repeat, Repeat)
    assert repeat.id == first.id
    system.ingest()
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert arrived(system) == {2: [first.id]}


def test_a_job_that_is_sent_again_under_its_key_keeps_its_priority():
    system = a_system()
    system.wire.around = on("table.mark_done", failing(Throttled("slow down")))
    job = submit(system, key="one", priority=2)
    assert submit(system, key="one", priority=2) == job
    assert arrived(system) == {2: [job.id, job.id]}


@pytest.mark.parametrize(("asked", "priority"), [({}, 1), ({"priority": 2}, 2)])
def test_a_body_may_ask_for_a_priority(asked, priority):
    assert read_jobs(json.dumps({"payload": 1, **asked})).priority == priority


@pytest.mark.parametrize("priority", ["2", 1.5, True, None, [], {}])
def test_a_body_with_a_priority_that_is_no_integer_is_refused_with_its_value(priority):
    with pytest.raises(InvalidJob) as refusal:
        read_jobs(json.dumps({"payload": 1, "priority": priority}))
    assert str(refusal.value).startswith(f"priority is {json.dumps(priority)}: ")
    assert "valid integer" in str(refusal.value)


def test_jobs_of_a_level_that_was_removed_go_on_to_its_queue_and_new_ones_are_refused():
    system = a_system(priorities=2)
    tabled, on_its_way = a_job(priority=2), a_job(priority=2)
    system.put(tabled)
    system.settings["emails"] = a_queue(priorities=1)
    system.ingest_message(Message.of(on_its_way))
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert arrived(system) == {2: [tabled.id, on_its_way.id]}
    assert isinstance(refused(system, priority=2), InvalidJob)


# What carries it


@pytest.mark.parametrize("priority", range(1, MAX_PRIORITY + 1))
def test_a_priority_travels_with_its_job_and_stays_when_it_is_parked(priority):
    job = a_job(priority=priority)
    message = Message.of(job)
    assert message.job() == message.with_reason("gone").job() == job
    assert message.attributes.get(PRIORITY) == (None if priority == 1 else str(priority))


@pytest.mark.parametrize("told", ["", "0", "6", "-2", "2.0", " 2", "02", "²", "٢", "high", "2" * 5000])
def test_a_message_with_a_bad_priority_carries_no_job_and_says_so(told):
    attributes = {**Message.of(a_job()).attributes, PRIORITY: told}
    with pytest.raises(InvalidJob, match=f"attribute {PRIORITY} is .* it must be from 1 to 5"):
        a_message(attributes=attributes).job()


def test_a_message_of_a_level_that_the_queue_does_not_have_is_parked_with_the_reason_and_not_lost():
    system, job = System(), a_job(due=NOW, priority=5)
    system.tick()
    system.ingest_message(Message.of(job))
    assert system.parked() == [job.id]
    assert "emails_p5 does not exist" in system.dead_letters.deliveries[0].message.attributes[REASON]


def test_a_message_with_all_that_dueline_adds_has_no_more_attributes_than_sqs_takes():
    job = a_job(tenant="acme", priority=2)
    parked = Message.of(job, moves=an_id()).with_reason("gone")
    assert {ID, EXPIRES, TENANT, PRIORITY, REASON} < set(parked.attributes)
    assert len(parked.attributes) <= MAX_ATTRIBUTES


def test_a_priority_is_kept_in_its_jobs_row_and_nothing_where_it_is_the_most_urgent():
    job = a_job(priority=2)
    assert rows.read_job(rows.job_row(job)) == job
    assert "priority" not in rows.job_row(a_job())


@pytest.mark.parametrize("priority", [0, 6, "high", [], None])
def test_a_row_with_a_priority_that_is_none_cannot_be_read_and_says_why(priority):
    with pytest.raises(InvalidJob, match="cannot be read"):
        rows.read_job({**rows.job_row(a_job()), "priority": priority})


@pytest.mark.parametrize("priority", [0, 6])
def test_a_job_of_no_priority_is_refused_with_what_is_allowed(priority):
    with pytest.raises(InvalidJob, match=f"priority is {priority}: it must be a whole number from 1 to 5"):
        a_job(priority=priority)
