"""Ids, instants, routes and delays."""

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import instant
from dueline.core.job import MAX_PARTITIONS, MAX_PAYLOAD_BYTES, QUEUE_NAME, JobId, Partition, Route
from dueline.core.request import GUARD, delay_seconds, partition_of, whole_seconds
from dueline.errors import JobNotFound, PayloadTooLarge
from tests.builders import NOW, a_job

IDS = st.builds(
    JobId,
    partition=st.builds(
        Partition, queue=st.from_regex(QUEUE_NAME, fullmatch=True), number=st.integers(0, MAX_PARTITIONS - 1)
    ),
    route=st.sampled_from(Route),
    due=st.datetimes(
        datetime.fromisoformat("1970-01-02"),
        datetime.fromisoformat("2200-01-01"),
        timezones=st.just(instant.EPOCH.tzinfo),
    ).map(instant.round_up),
    uid=st.uuids().map(str),
)
UID = uuid.UUID(int=7)


@given(IDS)
def test_id_is_read_as_it_was_written(id):
    assert JobId.parse(str(id)) == id


@pytest.mark.parametrize(
    "text",
    [
        f"emails.0.t.5.{UID}\n",
        f" emails.0.t.5.{UID}",
        f"emails.00.t.5.{UID}",
        f"emails.1000.t.5.{UID}",
        f"emails.-1.t.5.{UID}",
        f"emails.٣.t.5.{UID}",
        f"emails.0.x.5.{UID}",
        f"emails.0.t.05.{UID}",
        f"emails.0.t.-5.{UID}",
        f"emails.0.t.99999999999999.{UID}",
        f"emails.0.t.5.{str(uuid.UUID(int=10)).upper()}",
        f"emails.0.t.5.{UID.hex}",
        f"Emails.0.t.5.{UID}",
        f"e#mails.0.t.5.{UID}",
        f".0.t.5.{UID}",
        f"{'e' * 61}.0.t.5.{UID}",
        f"emails.0.t.5.{UID}.",
        pytest.param("x" * 100_000, id="long"),
    ],
)
def test_malformed_id_is_refused(text):
    with pytest.raises(JobNotFound) as caught:
        JobId.parse(text)
    assert len(str(caught.value)) < 300


def test_payload_of_256_kib_is_the_limit():
    for text in ("x" * MAX_PAYLOAD_BYTES, "é" * (MAX_PAYLOAD_BYTES // 2)):
        assert a_job(payload=text).size == MAX_PAYLOAD_BYTES
        with pytest.raises(PayloadTooLarge, match="262145 bytes: at most 262144"):
            a_job(payload=f"{text}x")


# Instants


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime.fromisoformat("1970-01-02"), datetime.fromisoformat("2200-01-01"), timezones=ZONES)


@given(INSTANTS)
def test_instant_is_rounded_up_to_milliseconds_and_round_trips(at):
    rounded = instant.round_up(at)
    assert timedelta(0) <= rounded - at < timedelta(milliseconds=1)
    assert rounded.microsecond % 1000 == 0
    assert rounded.tzinfo is UTC
    assert instant.parse(instant.text(rounded)) == rounded
    assert instant.from_epoch_ms(instant.epoch_ms(rounded)) == rounded


@pytest.mark.parametrize("read", [instant.round_up, instant.text])
def test_instant_without_a_zone_is_refused(read):
    with pytest.raises(ValueError, match="has no time zone"):
        read(datetime.fromisoformat("2026-01-01"))


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-01-01T00:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-12:00"]
)
def test_invalid_instant_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        instant.parse(text)


# Routes and delays


LEFT = st.timedeltas(timedelta(days=-1), timedelta(seconds=900) - GUARD)


@given(LEFT)
def test_delay_is_less_than_a_second_past_its_guard(left):
    """A clock may be 20 ms behind another: what is not due yet is held so much longer, and what is due is not held."""
    held = timedelta(seconds=delay_seconds(NOW + left, now=NOW))
    least = left + timedelta(milliseconds=20) if left > timedelta(0) else timedelta(0)
    assert least <= held < least + timedelta(seconds=1)
    # A precise queue gets its job just before.
    held = timedelta(seconds=delay_seconds(NOW + left, now=NOW, precise=True))
    most = max(left - timedelta(milliseconds=250), timedelta(0))
    assert most - timedelta(seconds=1) < held <= most


@pytest.mark.parametrize(("delay", "precise"), [(900.001, False), (901, True), (86_400, False)])
def test_a_delay_that_sqs_cannot_hold_is_refused(delay, precise):
    with pytest.raises(ValueError, match="over the 900 s"):
        whole_seconds(delay, precise=precise)


def test_partition_of_a_uid_is_stable():
    assert partition_of("5f0f3f5e-1111-4000-8000-000000000000", 64) == 41
