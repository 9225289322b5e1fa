"""On time is what SQS shows within a minute of when it is due."""

import math
from datetime import timedelta

import pytest

from dueline.config import metrics
from dueline.model.job import Partition
from functions.on_time import HandedOver, NotingDispatcher
from tests.builders import EMAILS, NOW, a_job, a_queue
from tests.system import System

INVOICES = Partition(queue="invoices", number=0)


def told(on_time, delayed):
    return {metrics.DISPATCHED: on_time + delayed, metrics.ON_TIME: on_time, metrics.DELAYED: delayed}


@pytest.mark.parametrize(("late", "on_time"), [(-600, True), (0, True), (60, True), (60.001, False)])
def test_a_job_is_on_time_if_it_is_sent_up_to_a_minute_after_it_is_due(late, on_time):
    handed_over = HandedOver()
    handed_over.note([a_job(due=NOW)], now=NOW + timedelta(seconds=late))
    assert handed_over.taken() == {"emails": told(int(on_time), int(not on_time))}


def test_jobs_are_counted_by_queue_and_by_invocation():
    handed_over = HandedOver()
    handed_over.note([a_job(due=NOW), a_job(due=NOW - timedelta(hours=1))], now=NOW)
    handed_over.note([a_job(due=NOW), a_job(partition=INVOICES, due=NOW)], now=NOW)
    assert handed_over.taken() == {"emails": told(2, 1), "invoices": told(1, 0)}
    assert handed_over.taken() == {}


def test_what_was_sent_is_counted_by_the_time_of_its_own_wave_and_what_was_not_sent_is_not():
    system, handed_over = System(a_queue()), HandedOver()
    dispatcher = NotingDispatcher.of(system.dispatcher("emails"), handed_over=handed_over)
    first, second = (a_job(due=NOW, uid=f"00000000-0000-4000-8000-00000000000{number}") for number in (1, 2))
    dispatcher.hand_over([first], until=math.inf)
    system.clock.sleep(61)
    dispatcher.hand_over([second], until=math.inf)
    dispatcher.hand_over([a_job(due=NOW + timedelta(days=1))], until=system.clock.monotonic() + 0.01)
    assert system.arrived() == [first.id, second.id]
    assert handed_over.taken() == {EMAILS.queue: told(1, 1)}
