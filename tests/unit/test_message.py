from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.errors import InvalidJob, PayloadTooLarge
from dueline.model.folding import FOLDED, unfolded
from dueline.model.job import MAX_PAYLOAD_BYTES, MAX_TENANT_CHARACTERS, Partition, Route
from dueline.model.message import (
    ATTRIBUTES_BYTES,
    BATCH_BYTES,
    DUE,
    EXPIRES,
    ID,
    MAX_ATTRIBUTES,
    OF_SCHEMA,
    PRIORITY,
    REASON,
    SCHEDULE,
    TENANT,
    Message,
    batches,
    job_batches,
)
from dueline.model.trace import MAX_STATE_CHARACTERS, TraceContext
from tests.builders import NOW, a_job, a_message, an_id

PARENT = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"


@pytest.mark.parametrize("route", Route)
def test_a_job_is_read_as_it_was_sent(route):
    job = a_job(route=route)
    assert Message.of(job, delay=5, group="emails").job() == job


def test_a_tenant_travels_with_its_job():
    job = a_job(tenant="acme")
    message = Message.of(job, group="emails")
    assert (message.attributes[TENANT], message.group) == ("acme", "emails")
    assert message.job() == message.with_reason("gone").job() == job


def test_the_body_is_the_payload_untouched():
    assert Message.of(a_job(payload='{"a":  1}')).body == '{"a":  1}'


def test_the_due_time_travels_in_a_form_that_people_read():
    assert Message.of(a_job(due=NOW)).attributes[DUE] == "2026-11-21T07:05:00.000Z"


def test_a_parked_message_carries_its_reason_and_still_its_job():
    job = a_job()
    parked = Message.of(job).with_reason("the queue is gone")
    assert parked.attributes[REASON] == "the queue is gone"
    assert parked.job() == job


def test_a_message_that_is_parked_again_carries_the_latest_reason():
    assert a_message().with_reason("first").with_reason("second").attributes[REASON] == "second"


def test_a_parked_message_is_neither_delayed_nor_grouped():
    parked = Message.of(a_job(), delay=9, group="emails").with_reason("gone")
    assert (parked.delay, parked.group) == (0, None)


def test_a_reason_is_short_and_printable():
    reason = a_message().with_reason("\x1b[31mno\n\0\ufffe" + "é" * 5000).attributes[REASON]
    assert reason.startswith(r"\x1b[31mno\n\x00\ufffe\xe9")
    assert reason.isascii()
    assert len(reason) <= 1000


def test_a_parked_message_has_no_more_attributes_than_sqs_takes():
    full = a_message(attributes={f"a{n}": "x" for n in range(MAX_ATTRIBUTES)})
    parked = full.with_reason("full")
    assert len(parked.attributes) == MAX_ATTRIBUTES
    assert parked.attributes[REASON] == "full"


def test_an_attribute_without_a_text_is_left_out_when_its_message_is_parked():
    assert set(a_message(attributes={"binary": ""}).with_reason("no job").attributes) == {REASON}


@pytest.mark.parametrize("name", [ID, EXPIRES])
def test_a_message_without_its_attributes_carries_no_job_and_says_which(name):
    attributes = {key: value for key, value in Message.of(a_job()).attributes.items() if key != name}
    with pytest.raises(InvalidJob, match=f"attribute '{name}' is missing"):
        a_message(attributes=attributes).job()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (ID, ""),
        (ID, "emails"),
        (SCHEDULE, "digest@2026-11-21T07:05:00"),
        (EXPIRES, ""),
        (EXPIRES, "soon"),
        (EXPIRES, "2027-01-01T00:00:00"),
        (EXPIRES, "0001-01-01T00:00:00+23:59"),
        (EXPIRES, "9999-12-31T23:59:59-12:00"),
        (EXPIRES, "2001-01-01T00:00:00Z"),
    ],
)
def test_a_message_with_a_bad_attribute_carries_no_job(name, value):
    with pytest.raises(InvalidJob):
        a_message(attributes={**Message.of(a_job()).attributes, name: value}).job()


def test_a_message_over_the_limit_carries_no_job():
    with pytest.raises(PayloadTooLarge):
        a_message(body="x" * (MAX_PAYLOAD_BYTES + 1), attributes=Message.of(a_job()).attributes).job()


def the_largest():
    """Return a job all of whose attributes are as long as they get, and one whose place it takes."""
    long = {"partition": Partition(queue="q" * 60, number=999), "due": datetime(2286, 1, 1, tzinfo=UTC)}
    trace = TraceContext(parent=PARENT, state="s" * MAX_STATE_CHARACTERS)
    told = {"tenant": "t" * MAX_TENANT_CHARACTERS, "priority": 5, "offloaded_bytes": 10**18 - 1, "trace": trace}
    return a_job(**long, **told, expires=long["due"]), an_id(**long)


def test_all_that_dueline_adds_fits_into_what_sqs_takes_and_what_batches_leave_for_it():
    job, old = the_largest()
    message = Message.of(job, moves=old).with_reason("r" * 5000)
    assert len(message.attributes) == MAX_ATTRIBUTES
    assert message.sent_bytes - len(message.body) <= ATTRIBUTES_BYTES
    assert (message.job(), message.moves()) == (job, old)
    assert message.attributes[REASON] == "r" * 1000


def test_a_job_of_a_schedule_keeps_all_but_its_trace_in_attributes_of_their_own_when_it_is_parked():
    job, old = the_largest()
    made = replace(job, schedule="s" * 64, nominal=NOW, exclusive=True)
    sent = Message.of(made, moves=old)
    parked = sent.with_reason("r" * 5000)
    assert len(sent.attributes) == len(parked.attributes) == MAX_ATTRIBUTES
    assert parked.sent_bytes - len(parked.body) <= ATTRIBUTES_BYTES
    assert (parked.job(), parked.moves()) == (replace(made, trace=None), old)
    assert replace(parked, attributes=unfolded(parked.attributes)).job() == made


@pytest.mark.parametrize(
    ("others", "left"),
    [(7, {"traceparent", "tracestate"}), (8, {FOLDED}), (9, {FOLDED}), (10, {FOLDED})],
)
def test_where_attributes_are_too_many_a_trace_is_folded_before_any_other_and_nothing_is_lost(others, left):
    attributes = {"tracestate": "vendor=7", "traceparent": PARENT, **{f"a{n}": "x" for n in range(others)}}
    parked = a_message(attributes=attributes).with_reason("full").attributes
    assert set(parked) == {REASON, *left, *(f"a{n}" for n in range(min(others, MAX_ATTRIBUTES - 2)))}
    assert unfolded(parked) == {**attributes, REASON: "full"}


def test_what_was_folded_is_not_folded_twice():
    full = a_message(attributes={f"a{n}": "x" for n in range(MAX_ATTRIBUTES)})
    assert full.with_reason("once").with_reason("twice") == full.with_reason("twice")


@pytest.mark.parametrize("rest", ["", "no JSON", "[" * 100_000, "[1]", '{"a":1}', "null"])
def test_what_nobody_folded_stays_as_it_is(rest):
    assert unfolded({FOLDED: rest, ID: "1"}) == {FOLDED: rest, ID: "1"}


def test_where_there_is_no_room_to_fold_a_message_keeps_its_own_before_it_tells_why():
    own = {f"a{n}": '"' * 100 for n in range(MAX_ATTRIBUTES)}
    taken = a_message(body="", attributes=own).sent_bytes
    full = Message(body="x" * (BATCH_BYTES - taken), attributes=own)
    assert full.with_reason("because") == full


@pytest.mark.parametrize(("room", "left"), [(0, {"traceparent", "tracestate"}), (-1, {"traceparent"}), (-25, set())])
def test_where_bytes_are_too_many_the_tracestate_goes_before_the_traceparent_and_both_before_the_reason(room, left):
    traced = {"traceparent": PARENT, "tracestate": "vendor=7"}
    taken = a_message(body="", attributes={**traced, REASON: "full"}).sent_bytes
    parked = a_message(body="x" * (BATCH_BYTES - taken - room), attributes=traced).with_reason("full")
    assert set(parked.attributes) == {REASON, *left}
    assert parked.attributes[REASON] == "full"


@given(st.dictionaries(st.sampled_from([ID, EXPIRES, DUE, PRIORITY, REASON, "other"]), st.text()), st.text())
def test_no_message_fails_in_any_other_way(attributes, body):
    with pytest.raises(InvalidJob):
        Message(body=body, attributes=attributes).job()


@given(st.lists(st.integers(1, MAX_PAYLOAD_BYTES), max_size=40))
def test_batches_keep_the_order_and_what_sqs_takes(sizes):
    cut = list(batches(sizes, size=lambda size: size))
    assert [size for batch in cut for size in batch] == sizes
    assert all(len(batch) <= 10 and sum(batch) <= BATCH_BYTES for batch in cut)


@given(st.lists(st.integers(1, MAX_PAYLOAD_BYTES), max_size=40))
def test_no_batch_could_have_taken_the_first_of_the_next(sizes):
    cut = list(batches(sizes, size=lambda size: size))
    for batch, following in pairwise(cut):
        assert len(batch) == 10 or sum(batch) + following[0] > BATCH_BYTES


def test_four_jobs_of_the_largest_size_need_two_batches_for_their_attributes():
    jobs = [a_job(payload="x" * MAX_PAYLOAD_BYTES) for _ in range(4)]
    assert [len(batch) for batch in job_batches(jobs)] == [3, 1]


@pytest.mark.parametrize("room", [0, len(REASON) + len("String"), len(REASON) + len("String") + 5])
def test_a_reason_is_told_as_far_as_sqs_leaves_room_for_it(room):
    parked = a_message(body="x" * (BATCH_BYTES - room), attributes={}).with_reason("because it is so")
    told = {REASON: "becau"} if room > len(REASON) + len("String") else {}
    assert (len(parked.body), parked.attributes) == (BATCH_BYTES - room, told)


def test_a_reason_takes_the_place_of_an_earlier_one():
    assert a_message(attributes={REASON: "old"}).with_reason("new").attributes == {REASON: "new"}


@pytest.mark.parametrize("payload", ["{}", '"é"', '"' + "ü" * 1000 + '"'])
def test_a_messages_size_is_at_least_what_sqs_counts(payload):
    message = Message.of(a_job(payload=payload)).with_reason("r" * 1000)
    counted = len(message.body.encode()) + sum(len(k) + len(v) + len("String") for k, v in message.attributes.items())
    assert counted <= message.size


def test_a_message_of_a_later_schema_is_not_guessed_at_and_one_that_tells_none_is_of_the_first():
    message = Message.of(a_job())
    assert OF_SCHEMA not in message.attributes
    later = replace(message, attributes={**message.attributes, OF_SCHEMA: "2"})
    for each in (later, later.with_reason("no room")):
        with pytest.raises(InvalidJob, match="it is of schema 2, and"):
            each.job()
    assert replace(message, attributes={**message.attributes, OF_SCHEMA: "1"}).job() == message.job()
