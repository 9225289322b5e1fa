"""What a row keeps of a payload, and when that is fewer units."""

import base64
import json
import os
import tracemalloc
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dueline.core import rows
from dueline.core.job import MAX_PAYLOAD_BYTES
from dueline.core.rows import pack, row_bytes, unpack, write_units
from dueline.errors import InvalidJob
from tests.builders import a_job
from tests.system import System

TEXTS = st.text(min_size=1, max_size=40).flatmap(lambda part: st.integers(1, 300).map(lambda times: part * times))


def scattered(size):
    """Return a text of so many bytes, three quarters of which no compression can do without."""
    return base64.b64encode(os.urandom(size)).decode()[:size]


@given(TEXTS)
def test_what_is_packed_is_unpacked(text):
    assert unpack(pack(text), most=MAX_PAYLOAD_BYTES) == text


@given(TEXTS, st.booleans())
def test_job_is_read_as_it_was_written_packed_or_not(payload, is_offloaded):
    job = a_job(payload=payload, tenant="acme", offloaded_bytes=300_000 if is_offloaded else None)
    assert rows.read_job(rows.job_row(job)) == job


def plain_and_packed(payload, **fields):
    row = rows.job_row(a_job(payload=payload, **fields))
    rest = {name: value for name, value in row.items() if name not in ("packed", "payload")}
    return row, rest | {"payload": payload}, rest | {"packed": pack(payload)}


@given(TEXTS)
def test_payload_is_packed_only_where_that_saves(payload):
    row, plain, packed = plain_and_packed(payload)
    saves = 10 * row_bytes(packed) <= 9 * row_bytes(plain) or write_units(packed) < write_units(plain)
    assert row == (packed if saves and len(payload) >= rows.PACKED_FROM else plain)


def test_row_of_one_unit_is_packed_to_save_storage():
    row, plain, _ = plain_and_packed(json.dumps([{"sku": n, "quantity": 1} for n in range(20)]))
    assert write_units(plain) == 1
    assert row_bytes(row) < 0.6 * row_bytes(plain)


def test_payload_that_saves_little_is_packed_only_for_a_unit():
    # Of seven bits in eight, which is as many as ASCII has.
    noise = bytes(byte & 127 for byte in os.urandom(1100)).decode()
    tried = [plain_and_packed(noise[:size]) for size in range(800, 1100, 5)]
    assert {"packed" in row for row, _, _ in tried} == {True, False}
    for row, plain, packed in tried:
        assert 9 * row_bytes(plain) < 10 * row_bytes(packed)
        assert ("packed" in row) == (write_units(packed) < write_units(plain))


def test_small_payload_is_not_packed(monkeypatch):
    monkeypatch.setattr(rows, "pack", None)
    assert "payload" in rows.job_row(a_job(payload="x" * (rows.PACKED_FROM - 1)))


@pytest.mark.parametrize("size", [500, 4096, 4097, 9000])
def test_what_other_versions_packed_is_read(size):
    payload = scattered(size)
    for level, window in ((6, 15), (1, 15), (9, 9)):
        packer = zlib.compressobj(level, zlib.DEFLATED, window)
        row = {**rows.job_row(a_job()), "packed": packer.compress(payload.encode()) + packer.flush()}
        assert rows.read_job(row).payload == payload


def bytes_of(value):
    """Return what DynamoDB counts of a value, as its documentation has it, apart from the code."""
    if isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return (len(str(value).strip("0")) + 1) // 2 + 1
    return len(value if isinstance(value, bytes) else value.encode())


@example({"pk": "x" * 1022})
@example({"pk": "x" * 1023})
@example({"pk": b"x" * 2046})
@example({"pk": "é" * 1023})
@example({"ttl": 1_800_000_000, "pk": "x" * 1017, "exact": True})
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=30),
        st.text(max_size=3000) | st.booleans() | st.integers(0, 10**12) | st.binary(max_size=3000),
    )
)
def test_units_are_counted_as_dynamodb_counts_them(row):
    size = sum(bytes_of(name) + bytes_of(value) for name, value in row.items())
    assert row_bytes(row) == size
    assert write_units(row) == -(-size // 1024)


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"", "does not end"),
        (b"no zlib", "broken"),
        (pack("[1,2,3]")[:-1], "does not end"),
        (pack("[1,2,3]")[:-2] + b"xx", "broken"),
        (pack("[1,2,3]") + b"more", "does not end"),
        (zlib.compress(b"\xff\xff"), "utf-8"),
        (zlib.compress(b""), "payload is empty"),
        (pack("x" * (MAX_PAYLOAD_BYTES + 1)), "over 262144 bytes"),
        (pack("x" * 100_000_000), "over 262144 bytes"),
    ],
)
def test_broken_packed_payload_says_why(packed, why):
    row = {**rows.job_row(a_job(payload="x" * 5000)), "packed": packed}
    with pytest.raises(InvalidJob, match=why):
        rows.read_job(row)


def test_no_more_is_unpacked_than_is_allowed():
    bomb = pack("x" * 100_000_000)
    tracemalloc.start()
    with pytest.raises(ValueError, match="over 262144 bytes"):
        unpack(bomb, most=MAX_PAYLOAD_BYTES)
    assert tracemalloc.get_traced_memory()[1] < 4 * MAX_PAYLOAD_BYTES
    tracemalloc.stop()


def test_packed_payload_of_the_very_limit_is_read():
    payload = "x" * MAX_PAYLOAD_BYTES
    row = rows.job_row(a_job(payload=payload))
    assert rows.payload_bytes(row) < 1024
    assert rows.read_job(row).payload == payload


def test_broken_packed_row_is_parked_as_it_is():
    system, broken, good = System(), a_job(payload="x" * 5000), a_job()
    system.table.write([{**rows.job_row(broken), "packed": os.urandom(390_000)}])
    system.put(good)
    system.clock.sleep(3600)
    ticked = system.tick()
    assert ticked.finished
    assert [entry.row["sk"] for entry in ticked.unreadable] == [rows.job_key(broken.id)[1]]
    assert system.arrived() == [good.id]
    (parked,) = system.dead_letters.deliveries
    assert json.loads(parked.message.body)["sk"] == rows.job_key(broken.id)[1]
    assert "compressed payload is broken" in parked.message.attributes["dueline-reason"]


@pytest.mark.parametrize("way", ["tick", "late path", "list", "reschedule"])
def test_packed_payload_arrives_untouched_by_each_route(way):
    system, job = System(), a_job(payload=json.dumps(["the same again"] * 1000))
    assert "packed" in rows.job_row(job)
    system.put(job)
    if way == "list":
        assert system.list_jobs().jobs == (job,)
        return
    id = job.id if way != "reschedule" else system.reschedule(job.id, delay=7200)
    system.ingest()
    system.clock.sleep(7200)
    system.tick()
    (delivery,) = system.queues["emails"].deliveries
    assert (delivery.message.job().id, delivery.message.body) == (id, job.payload)
