"""What is kept in S3 and not in messages or rows, where, and for how long."""

import base64
import hashlib
import json
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.client.models import payload_fields
from dueline.config.queue import MOST_RETENTION_DAYS
from dueline.core import rows
from dueline.core.job import KEEP_DAYS, MAX_OFFLOADED_BYTES, MAX_PAYLOAD_BYTES, MAX_RETENTION, Route, State
from dueline.core.message import OFFLOADED_BYTES
from dueline.core.payloads import AFTER_EXPIRY, MAX_ROW_PAYLOAD_BYTES, Upload, object_key
from dueline.core.ports import Pointer
from dueline.core.request import FURTHEST, Request, json_text
from dueline.errors import InvalidJob, PayloadTooLarge, Unavailable
from dueline.functions.http import requests
from dueline.operations.dead_letters import LONGER
from tests.builders import NOW, a_job, an_id
from tests.system import System
from tests.wire import failing, on, straight

AN_HOUR = 3600


def scattered(size):
    """Return a text that is `size` bytes as JSON and, compressed, three quarters of that."""
    return base64.b64encode(random.Random(size).randbytes(size)).decode()[: size - 2]


def kept(system, job):
    """Return what a job points to."""
    return system.stores.payloads.kept[Pointer.parse(job.payload).key].decode()


def an_upload(system, payload, *, queue="emails"):
    """Let something be uploaded; return its id."""
    body = json_text(payload).encode()
    uid, sha256 = "00000000-0000-4000-9000-000000000000", hashlib.sha256(body).hexdigest()
    upload = Upload(uid=uid, bytes=len(body), sha256=sha256)
    system.stores.payloads.kept[upload.key(queue)] = body
    return str(upload)


# What is kept where


@pytest.mark.parametrize(
    ("size", "delay", "is_offloaded"),
    [
        (MAX_PAYLOAD_BYTES, 0, False),
        (MAX_PAYLOAD_BYTES + 1, 0, True),
        (MAX_OFFLOADED_BYTES, 0, True),
        (MAX_ROW_PAYLOAD_BYTES, AN_HOUR, False),
        (10_000, AN_HOUR, False),
        (12_000, AN_HOUR, True),
    ],
)
def test_large_payload_is_offloaded(size, delay, is_offloaded):
    system, payload = System(), scattered(size)
    (job,) = system.submit(Request(payload=payload, delay=delay))
    assert job.offloaded_bytes == (size if is_offloaded else None)
    assert (kept(system, job) if is_offloaded else job.payload) == json_text(payload)
    assert len(system.stores.payloads.kept) == is_offloaded


def test_payload_is_kept_before_its_job(system):
    error = system.refused(Request(payload="x" * (MAX_OFFLOADED_BYTES - 1)), PayloadTooLarge)
    assert str(error) == "payload has 10485761 bytes: at most 10485760 are allowed"
    system.wire.around = on("payloads.put", failing(Unavailable("no")))
    assert system.refused(Request(payload=scattered(12_000), delay=AN_HOUR), Unavailable).job_id
    assert (system.in_the_table(), system.inbound.deliveries, system.stores.payloads.kept) == ([], [], {})


# The way of a pointer


def test_pointer_like_payload_is_a_payload():
    system, payload = System(), json.loads(Pointer(bucket="payloads", key="0032/emails/x").text)
    (job,) = system.submit(Request(payload=payload))
    (delivery,) = system.queues["emails"].deliveries
    assert job.offloaded_bytes is None
    assert OFFLOADED_BYTES not in delivery.message.attributes
    assert payload_fields(job) == {"payload": payload}


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '["a"]', '["a",{}]', '["a",{"s3BucketName":"b","s3Key":"k"}]', "[" * 100_000]
)
def test_what_is_no_pointer_is_not_read_as_one(text):
    with pytest.raises(ValueError, match="no pointer"):
        Pointer.parse(text)


# How long


@given(st.timedeltas(timedelta(0), FURTHEST), st.timedeltas(timedelta(days=1), MAX_RETENTION))
def test_payload_is_kept_long_enough(left, retention):
    id = an_id(due=NOW + left)
    needed = left + retention + AFTER_EXPIRY
    days, queue, uid = object_key(id, content="c", expires=id.due + retention, now=NOW).split("/")
    assert (queue, uid, len(days)) == ("emails", f"{id.uid}.c", 4)
    assert int(days) in KEEP_DAYS
    assert timedelta(days=int(days)) >= needed
    assert int(days) == min(KEEP_DAYS) or timedelta(days=int(days) / 2) < needed


def test_payload_outlives_its_dead_letter():
    in_queue, as_dead_letter = timedelta(days=MOST_RETENTION_DAYS), timedelta(days=14)
    assert in_queue + as_dead_letter < AFTER_EXPIRY
    # A redrive keeps the object again: of a parked job past its retention too, for a day and all that follows.
    assert timedelta(days=min(KEEP_DAYS)) > LONGER + AFTER_EXPIRY


# Keys


def test_repeat_needs_no_upload(system):
    """And one that is missing uses up no key."""
    upload = an_upload(system, "x")
    content = dict(system.stores.payloads.kept)
    system.stores.payloads.kept.clear()
    system.refused(Request(upload=upload, key="order 17", delay=AN_HOUR), InvalidJob)
    system.stores.payloads.kept.update(content)
    (first,) = system.submit(Request(upload=upload, key="order 17", delay=AN_HOUR))
    system.stores.payloads.kept.clear()
    (second,) = system.submit(Request(upload=upload, key="order 17", delay=AN_HOUR))
    assert second.id == first.id


def test_repeat_may_upload_what_was_given(system):
    of = {"kind": "receipt", "call": "order 17", "delay": AN_HOUR}
    first, second = system.submit(Request(payload="x", **of), Request(upload=an_upload(system, "x"), **of))
    assert second.id == first.id


# Uploads


@pytest.mark.parametrize(
    ("queue", "content"), [("emails", None), ("invoices", b'"x"'), ("emails", b'"more"'), ("emails", b'"y"')]
)
def test_bad_upload_makes_no_job(system, queue, content):
    upload = an_upload(system, "x", queue=queue)
    system.stores.payloads.kept = {} if content is None else {Upload.parse(upload).key(queue): content}
    assert str(system.refused(Request(upload=upload), InvalidJob)).startswith(f"upload is '{upload}': ")
    assert system.queues["emails"].deliveries == []


def test_upload_without_checksum_is_measured(system):
    upload = an_upload(system, "x")
    stored = system.stores.payloads.find(Upload.parse(upload).key("emails"))
    system.wire.around = on("payloads.find", lambda call: replace(stored, bytes=4, sha256=None))
    system.refused(Request(upload=upload), InvalidJob, "does not have the size and SHA-256 in its id")


@pytest.mark.parametrize("upload", ["", "x", "../x", f"{'0' * 36}.0.{'0' * 64}", f"{'0' * 36}.5.{'0' * 63}"])
def test_what_is_no_id_of_an_upload_is_refused(upload):
    System().refused(Request(upload=upload), InvalidJob, "must be the id of an upload")


@pytest.mark.parametrize(
    ("wrong", "kind", "reason"),
    [
        *(({"bytes": size}, InvalidJob, str(size)) for size in (0, -1)),
        ({"bytes": MAX_OFFLOADED_BYTES + 1}, PayloadTooLarge, "10485761"),
        *(({"sha256": text}, InvalidJob, "sha256 is") for text in ("", "0" * 63, "X" * 64, "0" * 65, "A" * 64)),
    ],
)
def test_upload_has_1_byte_to_10_mib_and_a_checksum(wrong, kind, reason):
    good = {"uid": "u", "bytes": MAX_OFFLOADED_BYTES, "sha256": "0" * 64}
    with pytest.raises(InvalidJob, match=reason) as refused:
        Upload(**good | wrong)
    assert refused.type is kind
    Upload(**good)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "payload is missing"),
        ({"payload": None, "upload": "x"}, "both given"),
        ({"upload": None}, "upload is null"),
        ({"upload": 5}, "upload is 5"),
    ],
)
def test_job_needs_a_payload_or_an_upload(body, why):
    with pytest.raises(InvalidJob, match=why):
        requests.read_jobs(json.dumps(body))


# Rescheduling


def moved(system, job, **to):
    id = system.reschedule(job.id, **to)
    key = rows.job_key(id)
    return rows.read_job(system.table.read([key]).rows[key])


@pytest.mark.parametrize("delay", [200, 7200], ids=["by an intent", "by a transaction alone"])
def test_payload_is_copied_before_the_move(system, delay):
    (job,) = system.submit(Request(payload=scattered(12_000), delay=AN_HOUR))
    system.tick(job.id.partition)
    system.wire.around = on("payloads.copy", failing(Unavailable("no")))
    with pytest.raises(Unavailable):
        system.reschedule(job.id, delay=delay)
    assert system.inbound.deliveries == []
    assert system.status_of(job.id).state is State.SCHEDULED
    system.wire.around = straight
    assert kept(system, moved(system, job, delay=delay)) == kept(system, job)
    assert len(system.inbound.deliveries) == (delay == 200)


def test_job_whose_payload_is_gone_is_not_moved(system):
    (job,) = system.submit(Request(payload=scattered(12_000), delay=AN_HOUR))
    system.ingest()
    system.stores.payloads.kept.clear()
    with pytest.raises(InvalidJob, match="is gone"):
        system.reschedule(job.id, delay=7200)
    assert system.inbound.deliveries == []


@pytest.mark.parametrize("key", ["0032/bills/x.7", "0032/emails-vip/x.7", "0032/emails/bills/x.7", "x.7", ""])
def test_foreign_pointer_gets_no_copy(system, key):
    system.stores.payloads.kept[key] = b'"of others"'
    job = a_job(payload=Pointer(bucket="payloads", key=key).text, offloaded_bytes=11, route=Route.TABLE)
    system.put(job)
    assert moved(system, job, delay=7200).payload == job.payload
    assert system.stores.payloads.kept == {key: b'"of others"'}
