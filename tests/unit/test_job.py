import uuid
from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core import instant
from dueline.core.job import MAX_PARTITIONS, MAX_PAYLOAD_BYTES, QUEUE_NAME, JobId, Partition, Route
from dueline.errors import InvalidJob, JobNotFound, PayloadTooLarge
from tests.builders import a_job

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


@given(IDS, st.data())
def test_id_with_one_character_changed_is_another_id_or_none(id, data):
    text = str(id)
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.characters()) + text[place + 1 :]
    with suppress(JobNotFound):
        assert str(JobId.parse(changed)) == changed


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
    ],
)
def test_id_that_is_not_exactly_of_the_form_is_no_id(text):
    with pytest.raises(JobNotFound):
        JobId.parse(text)


def test_message_of_a_malformed_id_shows_its_beginning_only():
    with pytest.raises(JobNotFound) as caught:
        JobId.parse("x" * 100_000)
    assert len(str(caught.value)) < 300


def test_payload_of_256_kib_is_allowed_and_no_more():
    assert a_job(payload="x" * MAX_PAYLOAD_BYTES).size == MAX_PAYLOAD_BYTES
    with pytest.raises(PayloadTooLarge, match="262145 bytes: at most 262144"):
        a_job(payload="x" * (MAX_PAYLOAD_BYTES + 1))


def test_payload_is_measured_in_bytes():
    assert a_job(payload='"é"').size == 4
    with pytest.raises(PayloadTooLarge):
        a_job(payload="é" * (MAX_PAYLOAD_BYTES // 2 + 1))


def test_empty_payload_is_refused():
    with pytest.raises(InvalidJob, match="empty"):
        a_job(payload="")
