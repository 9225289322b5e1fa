from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core.job import MAX_PAYLOAD_BYTES, MAX_TENANT_CHARACTERS, Partition
from dueline.core.message import (
    ATTRIBUTES_BYTES,
    BATCH_BYTES,
    DUE,
    EXPIRES,
    FOLDED,
    ID,
    MAX_ATTRIBUTES,
    OF_SCHEMA,
    OFFLOADED_BYTES,
    PRIORITY,
    REASON,
    SCHEDULE,
    Message,
    TypedText,
    batches,
    type_of,
    unfolded,
)
from dueline.core.trace import MAX_STATE_CHARACTERS, TraceContext
from dueline.errors import InvalidJob
from tests.builders import NOW, a_job, a_message, an_id

PARENT = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"


def test_due_time_travels_in_a_form_that_people_read():
    assert Message.of(a_job(due=NOW)).attributes[DUE] == "2026-11-21T07:05:00.000Z"


def test_reason_is_short_and_printable():
    reason = a_message().with_reason("\x1b[31mno\n\0\ufffe" + "é" * 5000).attributes[REASON]
    assert reason.startswith(r"\x1b[31mno\n\x00\ufffe\xe9")
    assert reason.isascii()
    assert len(reason) <= 1000


def test_folded_attributes_keep_their_types():
    typed = {
        f"{name}{n}": value
        for n in range(4)
        for name, value in (("n", TypedText("4", data_type="Number")), ("b", TypedText.of_bytes(b"\x00\xff")))
    } | {"text": "x"}
    parked = a_message(attributes=typed).with_reason("full").with_reason("again")
    restored = unfolded(parked.attributes)
    assert restored == {**typed, REASON: "again"}
    assert {name: type_of(name, value) for name, value in restored.items()} == {
        **{f"n{n}": "Number" for n in range(4)},
        **{f"b{n}": "Binary" for n in range(4)},
        "text": "String",
        REASON: "String",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (ID, None),
        (EXPIRES, None),
        (ID, ""),
        (ID, "emails"),
        (SCHEDULE, "digest@2026-11-21T07:05:00"),
        (EXPIRES, ""),
        (EXPIRES, "soon"),
        (EXPIRES, "2027-01-01T00:00:00"),
        (EXPIRES, "0001-01-01T00:00:00+23:59"),
        (EXPIRES, "9999-12-31T23:59:59-12:00"),
        (EXPIRES, "2001-01-01T00:00:00Z"),
        *((PRIORITY, text) for text in ("", "0", "6", "-2", "2.0", " 2", "02", "²", "٢", "high", "2" * 5000)),
        *((OFFLOADED_BYTES, text) for text in ("", "x", "-1", "1.5", "0", "\uff19", "1" * 19)),
    ],
)
def test_message_with_a_bad_attribute_carries_no_job(name, value):
    reasons = {PRIORITY: f"{PRIORITY} is .* it must be from 1 to 5", OFFLOADED_BYTES: "ExtendedPayloadSize|1 or more"}
    reason = f"attribute '{name}' is missing" if value is None else reasons.get(name)
    attributes = {key: text for key, text in Message.of(a_job()).attributes.items() if key != name}
    if value is not None:
        attributes[name] = value
        assert (name, value) == (OFFLOADED_BYTES, "0") or type_of(name, value) == "String"
    with pytest.raises(InvalidJob, match=reason):
        a_message(attributes=attributes).job()


def the_largest():
    """Return a job all of whose attributes are as long as they get, and one whose place it takes."""
    long = {"partition": Partition(queue="q" * 60, number=999), "due": datetime(2286, 1, 1, tzinfo=UTC)}
    trace = TraceContext(parent=PARENT, state="s" * MAX_STATE_CHARACTERS)
    answer = {"tenant": "t" * MAX_TENANT_CHARACTERS, "priority": 5, "offloaded_bytes": 10**18 - 1, "trace": trace}
    return a_job(**long, **answer, expires=long["due"]), an_id(**long)


def test_dueline_attributes_fit_into_what_batches_leave():
    job, old = the_largest()
    message = Message.of(job, moves=old).with_reason("r" * 5000)
    assert len(message.attributes) == MAX_ATTRIBUTES
    assert message.sent_bytes - len(message.body) <= ATTRIBUTES_BYTES
    assert (message.job(), message.moves()) == (job, old)
    assert message.attributes[REASON] == "r" * 1000


def test_parked_run_folds_nothing_but_its_trace():
    job, old = the_largest()
    made = replace(job, schedule="s" * 64, scheduled_for=NOW, exclusive=True)
    sent = Message.of(made, moves=old)
    parked = sent.with_reason("r" * 5000)
    assert len(sent.attributes) == len(parked.attributes) == MAX_ATTRIBUTES
    assert parked.sent_bytes - len(parked.body) <= ATTRIBUTES_BYTES
    assert (parked.job(), parked.moves()) == (replace(made, trace=None), old)
    assert replace(parked, attributes=unfolded(parked.attributes)).job() == made


@pytest.mark.parametrize(
    ("others", "left"), [(7, {"traceparent", "tracestate"}), (8, {FOLDED}), (9, {FOLDED}), (10, {FOLDED})]
)
def test_trace_is_folded_before_other_attributes(others, left):
    attributes = {"tracestate": "vendor=7", "traceparent": PARENT, **{f"a{n}": "x" for n in range(others)}}
    parked = a_message(attributes=attributes).with_reason("full").attributes
    assert set(parked) == {REASON, *left, *(f"a{n}" for n in range(min(others, MAX_ATTRIBUTES - 2)))}
    assert unfolded(parked) == {**attributes, REASON: "full"}


@pytest.mark.parametrize(
    "rest",
    [
        *["", "no JSON", "[" * 100_000, "[1]", "null", '{"a":1}', '{"a b":"c"}', '{"AWS.a":"c"}', '{"":"x"}'],
        *[r'{"x":"\ud800"}', r'{"\ud800":"x"}', '{"x":["Binary","x"]}', '{"x":["Foo","1"]}', '{"x":["Number","x"]}'],
    ],
)
def test_what_nobody_folded_stays_as_it_is(rest):
    assert unfolded({FOLDED: rest, ID: "1"}) == {FOLDED: rest, ID: "1"}


def test_full_message_keeps_its_own_attributes():
    own = {f"a{n}": '"' * 100 for n in range(MAX_ATTRIBUTES)}
    received = a_message(body="", attributes=own).sent_bytes
    full = Message(body="x" * (BATCH_BYTES - received), attributes=own)
    assert full.with_reason("because") == full


@pytest.mark.parametrize(("room", "left"), [(0, {"traceparent", "tracestate"}), (-1, {"traceparent"}), (-25, set())])
def test_tracestate_is_dropped_before_traceparent_and_reason(room, left):
    traced = {"traceparent": PARENT, "tracestate": "vendor=7"}
    received = a_message(body="", attributes={**traced, REASON: "full"}).sent_bytes
    parked = a_message(body="x" * (BATCH_BYTES - received - room), attributes=traced).with_reason("full")
    assert set(parked.attributes) == {REASON, *left}
    assert parked.attributes[REASON] == "full"


def test_parked_message_is_not_delayed_grouped_or_folded_twice():
    full = a_message(attributes={f"a{n}": "x" for n in range(MAX_ATTRIBUTES)}, delay=9, group="emails")
    parked = full.with_reason("once").with_reason("twice")
    assert parked == full.with_reason("twice")
    assert (parked.delay, parked.group) == (0, None)


@given(st.lists(st.integers(1, MAX_PAYLOAD_BYTES), max_size=40))
def test_batches_keep_the_order_and_are_as_full_as_sqs_takes(sizes):
    cut = list(batches(sizes, size=lambda size: size))
    assert [size for batch in cut for size in batch] == sizes
    assert all(len(batch) <= 10 and sum(batch) <= BATCH_BYTES for batch in cut)
    assert all(len(batch) == 10 or sum(batch) + following[0] > BATCH_BYTES for batch, following in pairwise(cut))


@pytest.mark.parametrize("room", [0, len(REASON) + len("String"), len(REASON) + len("String") + 5])
def test_reason_is_reported_as_far_as_sqs_leaves_room_for_it(room):
    parked = a_message(body="x" * (BATCH_BYTES - room), attributes={}).with_reason("because it is so")
    answer = {REASON: "becau"} if room > len(REASON) + len("String") else {}
    assert (len(parked.body), parked.attributes) == (BATCH_BYTES - room, answer)


def test_message_of_a_later_schema_is_not_read():
    message = Message.of(a_job())
    assert OF_SCHEMA not in message.attributes
    later = replace(message, attributes={**message.attributes, OF_SCHEMA: "2"})
    for each in (later, later.with_reason("no room")):
        with pytest.raises(InvalidJob, match="it is of schema 2, and"):
            each.job()
    assert replace(message, attributes={**message.attributes, OF_SCHEMA: "1"}).job() == message.job()
