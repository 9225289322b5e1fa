import json
import math

import pytest

from dueline.errors import Throttled, Unavailable
from dueline.model import rows
from dueline.model.job import State
from dueline.model.message import REASON
from tests.builders import a_job
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, on


def test_a_parked_job_is_in_the_dead_letter_queue_with_its_reason_and_look_up_tells_it():
    system, job = System(), a_job()
    assert system.parking.park([job], reason="the queue is gone") == []
    (delivery,) = system.dead_letters.deliveries
    assert delivery.message.job() == job
    assert delivery.message.attributes[REASON] == "the queue is gone"
    assert system.look_up(job.id) is State.PARKED


def test_what_was_parked_can_be_put_back_through_the_inbound_queue():
    system, job = System(), a_job()
    system.parking.park([job], reason="the queue is gone")
    system.ingest_message(system.dead_letters.deliveries[0].message)
    system.clock.sleep(3600)
    system.tick()
    assert system.arrived() == [job.id]


@pytest.mark.parametrize("name", ["table.write", "dead_letters.send"])
@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no")), losing_the_answer])
def test_jobs_that_could_not_be_parked_are_to_be_tried_again(name, react):
    system, jobs = System(), [a_job(), a_job()]
    system.queues["emails"].gone = True
    system.wire.around = on(name, react)
    system.clock.sleep(3600)
    handed = system.dispatcher("emails").hand_over(jobs, until=math.inf)
    assert handed.unfinished == tuple(jobs)
    assert handed.fault.startswith("not parked")


@pytest.mark.parametrize("name", ["table.write", "dead_letters.send"])
def test_a_batch_that_is_parked_in_part_leaves_the_rest(name):
    system, jobs = System(), [a_job(), a_job(), a_job()]
    system.wire.around = on(name, done_in_part)
    assert system.parking.park(jobs, reason="gone") == jobs[:1]
    assert system.parked() == [job.id for job in jobs[1:]]


def test_no_job_is_parked_before_look_up_could_tell_it():
    system, job = System(), a_job()
    system.wire.around = on("table.write", failing(Unavailable("no")))
    with pytest.raises(Unavailable):
        system.parking.park([job], reason="gone")
    assert system.dead_letters.deliveries == []


def test_nothing_is_lost_while_the_dead_letter_queue_itself_is_gone():
    system, job = System(), a_job()
    system.dead_letters.gone = system.queues["emails"].gone = True
    system.put(job, bad := a_job())
    system.table.write([{**rows.job_row(bad), "ttl": "soon"}])
    system.clock.sleep(3600)
    done = system.tick()
    assert not done.finished
    assert "dead_letters" in done.fault
    assert system.cursor() == rows.FIRST


def test_a_row_that_cannot_be_read_is_parked_as_json():
    system = System()
    row = {**rows.job_row(a_job()), "ttl": "soon"}
    assert system.parking.park_row(row, reason="no ttl")
    (delivery,) = system.dead_letters.deliveries
    assert json.loads(delivery.message.body) == row
    assert delivery.message.attributes == {REASON: "no ttl"}


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), done_in_part])
def test_a_row_that_could_not_be_parked_stops_its_tick(react):
    system, job = System(), a_job()
    system.table.write([{**rows.job_row(job), "ttl": "soon"}])
    system.clock.sleep(3600)
    system.wire.around = on("dead_letters.send", react)
    assert not system.tick().finished
    assert system.cursor() == rows.FIRST
