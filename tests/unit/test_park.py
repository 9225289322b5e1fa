import base64
import json
import math
import zlib

import pytest

from dueline.core import rows
from dueline.core.job import State
from dueline.core.message import REASON
from dueline.errors import Throttled, Unavailable
from tests.builders import a_job
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, on


def test_parked_job_has_a_reason_and_a_status():
    system, job = System(), a_job()
    assert system.parking.park([job], reason="the queue is gone") == {}
    (delivery,) = system.dead_letters.deliveries
    assert delivery.message.job() == job
    assert delivery.message.attributes[REASON] == "the queue is gone"
    assert system.look_up(job.id) is State.PARKED


@pytest.mark.parametrize("name", ["table.write", "dead_letters.send"])
@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no")), losing_the_answer])
def test_jobs_that_could_not_be_parked_are_to_be_tried_again(name, react):
    system, jobs = System(), [a_job(), a_job()]
    system.queues["emails"].gone = True
    system.wire.around = on(name, react)
    system.clock.sleep(3600)
    sent = system.dispatcher("emails").dispatch(jobs, until=math.inf)
    assert sent.unfinished == tuple(jobs)
    assert sent.fault.startswith("not parked")


@pytest.mark.parametrize("name", ["table.write", "dead_letters.send"])
def test_batch_that_is_parked_in_part_leaves_the_rest(name):
    system, jobs = System(), [a_job(), a_job(), a_job()]
    system.wire.around = on(name, done_in_part)
    assert list(system.parking.park(jobs, reason="gone")) == jobs[:1]
    assert system.parked() == [job.id for job in jobs[1:]]


def test_no_job_is_parked_before_look_up_could_report_it():
    system, job = System(), a_job()
    system.wire.around = on("table.write", failing(Unavailable("no")))
    with pytest.raises(Unavailable):
        system.parking.park([job], reason="gone")
    assert system.dead_letters.deliveries == []


def test_row_that_cannot_be_read_is_parked_as_json():
    system = System()
    row = {**rows.job_row(a_job()), "ttl": "soon"}
    system.parking.park_row(row, reason="no ttl")
    (delivery,) = system.dead_letters.deliveries
    assert json.loads(delivery.message.body) == row
    assert delivery.message.attributes == {REASON: "no ttl"}


def test_look_up_of_a_parked_unreadable_row_is_parked():
    system, job = System(), a_job()
    system.table.write([{**rows.job_row(job), "ttl": "soon"}])
    system.clock.sleep(3600)
    assert system.tick().finished
    assert (len(system.dead_letters.deliveries), system.look_up(job.id)) == (1, State.PARKED)


@pytest.mark.parametrize(
    "payload", ['"a\x01\ufffeé"', '"' + "\x01" * 260_000 + '"'], ids=["small", "over 1 MiB escaped"]
)
def test_job_whose_payload_sqs_refuses_is_parked(payload):
    """Its partition goes on, the letter has the whole payload, and a look-up says that it was parked."""
    system, job, other = System(), a_job(payload=payload), a_job()
    system.put(job, other)
    system.clock.sleep(3600)
    assert system.tick().finished
    assert (system.arrived(), system.look_up(job.id)) == ([other.id], State.PARKED)
    (delivery,) = system.dead_letters.deliveries
    assert "InvalidMessageContents" in delivery.message.attributes[REASON]
    if "é" in payload:
        assert json.loads(delivery.message.body) == json.loads(payload, strict=False)
        system.ingest_message(delivery.message)
        assert system.arrived() == [other.id, job.id]
    else:
        row = {
            **json.loads(delivery.message.body),
            "packed": base64.b64decode(json.loads(delivery.message.body)["packed"]),
        }
        assert rows.read_job(row) == job


@pytest.mark.parametrize("payload", ["é" * 190_000, "\x01\ufffe" * 90_000], ids=["beyond ASCII", "escaped"])
def test_row_too_large_as_json_is_parked(payload):
    """As text it may be over what SQS accepts; its tick goes on all the same, and the letter has all of it."""
    system, good = System(), a_job()
    row = {**rows.job_row(a_job()), "v": 2, "payload": payload}
    system.table.write([row])
    system.put(good)
    system.clock.sleep(3600)
    assert system.tick().finished
    assert system.arrived() == [good.id]
    (delivery,) = system.dead_letters.deliveries
    dead_letter = json.loads(delivery.message.body)
    if "zlib_base64" in dead_letter:
        dead_letter = json.loads(zlib.decompress(base64.b64decode(dead_letter["zlib_base64"])))
    assert dead_letter == row


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), done_in_part])
def test_row_that_could_not_be_parked_stops_its_tick(react):
    system, job = System(), a_job()
    system.table.write([{**rows.job_row(job), "ttl": "soon"}])
    system.clock.sleep(3600)
    system.wire.around = on("dead_letters.send", react)
    assert not system.tick().finished
    assert system.cursor() == rows.FIRST
