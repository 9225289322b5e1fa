"""Rows of the table: their keys, what they hold, and when a payload is packed."""

import tracemalloc
import zlib
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import rows
from dueline.core.job import MAX_PAYLOAD_BYTES, Route, StoredJob
from dueline.core.message import SCHEDULE, Message
from dueline.core.rows import pack, unpack
from dueline.errors import InvalidJob
from tests.builders import NOW, a_job, an_id


@pytest.mark.parametrize("exclusive", [False, True])
def test_row_and_message_name_the_schedule(exclusive):
    job = a_job(schedule="daily.digest", scheduled_for=NOW, exclusive=exclusive)
    answer = f"daily.digest@2026-11-21T07:05:00.000Z{'!skip' if exclusive else ''}"
    assert rows.job_row(job)["schedule"] == Message.of(job).attributes[SCHEDULE] == answer
    assert rows.read_job(rows.job_row(job)) == Message.of(job).job() == Message.of(job).with_reason("gone").job() == job
    assert "schedule" not in rows.job_row(a_job())
    assert SCHEDULE not in Message.of(a_job()).attributes


def test_keys_sort_by_due_time_and_a_cancellation_before_its_job():
    """A fence ends behind all that is due at its instant, and before the next."""
    earlier = an_id(due=NOW - timedelta(milliseconds=1), uid="ffffffff-ffff-4fff-bfff-ffffffffffff")
    job = replace(earlier, due=NOW)
    later = an_id(due=NOW + timedelta(milliseconds=1), uid="00000000-0000-4000-8000-000000000000")
    keys = [rows.job_key(earlier)[1], rows.cancellation_key(job)[1], rows.job_key(job)[1], rows.parked_key(job)[1]]
    keys += [rows.end_of("2026-11-21T07:05:00.000Z"), rows.cancellation_key(later)[1]]
    assert keys == sorted(set(keys))


def test_routes_share_only_the_outcome_row():
    job = an_id(due=NOW)
    direct = replace(job, route=Route.DIRECT)
    kinds = (rows.job_key, rows.cancellation_key, rows.handled_key, rows.parked_key)
    assert {key(job) for key in kinds}.isdisjoint(key(direct) for key in kinds)
    assert rows.cancellation_key(job)[1] == f"2026-11-21T07:05:00.000Z#{job.uid}#cancelled"
    assert rows.parked_key(direct)[1] < rows.end_of("2026-11-21T07:05:00.000Z")
    assert rows.prefix_and_kind(rows.job_key(job)[1])[0] != rows.prefix_and_kind(rows.cancellation_key(direct)[1])[0]


@pytest.mark.parametrize(
    "broken",
    [
        {"payload": "x" * 262_145},
        {"ttl": "soon"},
        {"schedule": "digest"},
        {"schedule": "digest@soon"},
        {"schedule": "a#b@2026-11-21T07:05:00Z"},
        {"schedule": 7},
        {"ttl": None},
        {"ttl": 10**30},
        {"pk": "emails"},
        {"pk": "emails#x"},
        {"sk": "soon#uid#job"},
        {"sk": "0001-01-01T00:00:00+23:59#uid#job"},
        {"sk": "#job"},
        {"sk": "2026-11-21T08:05:00Z#00000000-0000-4000-8000-000000000000#job"},
        {"pk": "emails#00"},
        {"payload": ...},
        {"ttl": ...},
    ],
)
def test_row_that_cannot_be_read_says_why(broken):
    """Also where it lacks something, which is `...` here."""
    [(field, wrong)] = broken.items()
    row = {name: value for name, value in {**rows.job_row(a_job()), **broken}.items() if value is not ...}
    with pytest.raises(InvalidJob, match=f"has no '{field}'" if wrong is ... else "row|payload"):
        rows.read_job(row)


def test_row_of_a_later_schema_is_not_read():
    row = rows.job_row(a_job())
    assert "v" not in row
    assert rows.read_job({**row, "v": 1}) == rows.read_job(row)
    with pytest.raises(InvalidJob, match="cannot be read: it is of schema 2, and"):
        rows.read_job({**row, "v": 2, "payload": 7})


def test_cancellation_and_note_outlive_their_job():
    job = StoredJob(id=an_id(), payload="{}", expires=an_id().due + timedelta(days=30))
    cancellation = rows.cancellation_row(job.id, at=NOW)
    note = rows.handled_row(job, dispatched=True)
    move = rows.move_row(job.id, rows.MOVE_PENDING, at=NOW)
    least = int(rows.job_row(job)["ttl"]) + timedelta(days=7).total_seconds()
    assert int(cancellation["ttl"]) >= least
    assert int(note["ttl"]) >= least
    assert move["ttl"] == cancellation["ttl"]


# Packed payloads


TEXTS = st.text(min_size=1, max_size=40).flatmap(lambda part: st.integers(1, 300).map(lambda times: part * times))


@given(TEXTS, st.booleans())
def test_job_round_trips_packed_or_not(payload, is_offloaded):
    fields = {"key": "ann 1", "kind": "welcome", "tenant": "acme"}
    job = a_job(payload=payload, **fields, offloaded_bytes=300_000 if is_offloaded else None)
    assert rows.read_job(rows.job_row(job)) == job


@given(TEXTS)
def test_payload_is_packed_only_where_that_saves(payload):
    saves = len(payload) >= rows.PACKED_FROM and 10 * len(pack(payload)) <= 9 * len(payload.encode())
    assert ("packed" in rows.job_row(a_job(payload=payload))) is saves


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
