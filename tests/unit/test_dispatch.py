import math
from datetime import timedelta

import pytest

from dueline.core.dispatch import PAST_RETENTION
from dueline.core.message import REASON
from dueline.errors import Throttled, Unavailable
from tests.builders import NOW, a_job
from tests.system import System
from tests.wire import done_in_part, failing, meanwhile, on, refusing_for_good


def due_in(seconds, **overrides):
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def dispatch(system, *jobs, until=math.inf):
    return system.dispatcher("emails").dispatch(jobs, until=until)


def delays(system):
    return [delivery.message.delay for delivery in system.queues["emails"].deliveries]


def test_clock_is_read_for_each_batch_just_before_it_is_sent():
    system = System()
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(7)))
    dispatch(system, *[due_in(100) for _ in range(20)])
    assert delays(system) == [100] * 10 + [93] * 10


def test_job_past_its_retention_is_parked_with_the_reason():
    system, job = System(), due_in(-10, expires=NOW)
    sent = dispatch(system, job)
    assert [(parked.job, parked.reason) for parked in sent.parked] == [(job, PAST_RETENTION)]
    assert system.dead_letters.deliveries[0].message.attributes[REASON] == PAST_RETENTION
    assert system.arrived() == []


def test_last_moment_of_a_retention_still_counts():
    system = System()
    dispatch(system, due_in(-10, expires=NOW + timedelta(milliseconds=1)))
    assert len(system.arrived()) == 1


def test_content_that_sqs_refuses_for_good_is_parked_alone():
    system, bad, good = System(), due_in(1), due_in(2)
    system.wire.around = on("emails.send", refusing_for_good)
    sent = dispatch(system, bad, good)
    assert [parked.job for parked in sent.parked] == [bad]
    assert sent.dispatched == (good,)
    assert system.arrived() == [good.id]


@pytest.mark.parametrize("error", [Throttled("slow down"), Unavailable("lost")])
def test_throttled_batch_is_retried_with_growing_pauses(error):
    system, job = System(), due_in(10)
    system.wire.around = on("emails.send", failing(error), times=3)
    assert dispatch(system, job).dispatched == (job,)
    assert system.clock.monotonic() == pytest.approx(0.1 + 0.2 + 0.4)


def test_only_what_was_refused_is_sent_again():
    system, jobs = System(), [due_in(1), due_in(2), due_in(3)]
    system.wire.around = on("emails.send", done_in_part, times=1)
    assert set(dispatch(system, *jobs).dispatched) == set(jobs)
    assert system.arrived() == [jobs[1].id, jobs[2].id, jobs[0].id]


def test_no_request_begins_after_the_time_to_stop():
    system, jobs = System(), [due_in(100) for _ in range(30)]
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(5)))
    sent = dispatch(system, *jobs, until=6)
    assert len(sent.dispatched) == 20
    assert sent.unfinished == tuple(jobs[20:])


def test_no_pause_reaches_beyond_the_time_to_stop():
    system = System()
    system.wire.around = on("emails.send", failing(Throttled("slow down")))
    dispatch(system, due_in(1), until=0.35)
    assert system.clock.monotonic() == pytest.approx(0.1 + 0.2)


def test_job_beyond_what_sqs_can_hold_is_left_for_later():
    system, job = System(), due_in(960)
    assert dispatch(system, job).unfinished == (job,)
    assert system.arrived() == []
