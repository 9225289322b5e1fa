"""What every queue keeps, on every engine."""

from dataclasses import replace

import pytest

from dueline.core.message import BATCH_BYTES, Message, TypedText, type_of
from dueline.core.ports import Depth
from dueline.errors import DuelineError, QueueNotFound
from dueline.operations.dead_letters import to_its_queue
from tests.builders import a_job, a_message
from tests.contract.engines import QUEUES

pytestmark = pytest.mark.parametrize("engine", QUEUES, indirect=True)


@pytest.fixture
def queue(engine):
    return engine.queue()


def is_taken(queue, *messages):
    """Return whether a queue takes messages; an engine may refuse them by name or altogether."""
    try:
        return queue.send(messages) == []
    except (ValueError, DuelineError):
        return False


def visible(queue):
    """Return the messages that a worker would receive now."""
    received = []
    while batch := queue.receive(most=10, wait=0, hidden=600):
        received += [each.message for each in batch]
    return received


def bodies(received):
    return sorted(each.message.body for each in received)


# send and depth


@pytest.mark.parametrize(
    "sent",
    [Message.of(a_job(payload='{"a":  "\\u00e9"}')), a_message(attributes={}), a_message(group="emails")],
    ids=["job", "plain", "group"],
)
def test_message_arrives_unchanged(queue, sent):
    assert queue.send([sent]) == []
    assert visible(queue) == [replace(sent, group=None)]


def test_batch_of_eleven_is_refused_whole(queue):
    assert not is_taken(queue, *[a_message() for _ in range(11)])
    assert visible(queue) == []


def test_too_long_a_delay_fails_alone(queue):
    (refusal,) = queue.send([a_message(body="1"), a_message(body="2", delay=901), a_message(body="3")])
    assert (refusal.index, refusal.final) == (1, True)
    assert refusal.reason.startswith("InvalidParameterValue")
    assert sorted(message.body for message in visible(queue)) == ["1", "3"]


def test_message_may_have_1_mib(queue):
    assert is_taken(queue, a_message(body="x" * BATCH_BYTES, attributes={}))
    assert not is_taken(queue, a_message(body="x" * (BATCH_BYTES + 1), attributes={}))
    assert len(visible(queue)) == 1


def test_depth_counts_waiting_and_delayed(queue):
    assert queue.depth() == Depth(waiting=0, in_flight=0, delayed=0)
    queue.send([a_message(delay=900), a_message(delay=900), a_message(delay=900), a_message(), a_message()])
    assert queue.depth() == Depth(waiting=2, in_flight=0, delayed=3)


def test_deleted_queue_is_not_found(engine, queue):
    engine.delete(queue)
    for call in (
        lambda: queue.send([a_message()]),
        queue.depth,
        lambda: queue.receive(most=1, wait=0),
        lambda: queue.delete(["1"]),
        lambda: queue.hide(["1"], [0]),
    ):
        with pytest.raises(QueueNotFound):
            call()


# receive, delete and hide


def test_message_is_received_as_sent(queue):
    sent = Message.of(a_job())
    queue.send([sent])
    (first,) = queue.receive(most=10, wait=0, hidden=0)
    (again,) = queue.receive(most=10, wait=0)
    assert first.message == again.message == sent
    assert (first.message_id, first.sent) == (again.message_id, again.sent)
    assert (first.receives, again.receives) == (1, 2)
    assert first.receipt != again.receipt


def test_attributes_are_redriven_with_types(queue):
    typed = {
        "sig": TypedText.of_bytes(b"\x00\xff"),
        "count": TypedText("42", data_type="Number"),
        "uuid": TypedText("x", data_type="String.uuid"),
        "text": "y",
    }
    queue.send([a_message(attributes=typed)])
    (first,) = queue.receive(most=10, wait=0)
    queue.delete([first.receipt])
    assert queue.send([to_its_queue(first.message, levels=1)]) == []
    (again,) = queue.receive(most=10, wait=0)
    assert again.message.attributes == typed
    types = {name: type_of(name, value) for name, value in again.message.attributes.items()}
    assert types == {"sig": "Binary", "count": "Number", "uuid": "String.uuid", "text": "String"}


def test_receive_returns_at_most_the_limit(queue):
    queue.send([a_message(body=str(number)) for number in range(10)])
    first, second = queue.receive(most=3, wait=0), queue.receive(most=10, wait=0)
    assert (len(first), len(second)) == (3, 7)
    assert len(set(bodies(first + second))) == 10


def test_message_is_hidden_until_its_timeout(engine, queue):
    queue.send([a_message(body="for long"), a_message(body="for less")])
    receipts = {each.message.body: each.receipt for each in queue.receive(most=10, wait=0, hidden=600)}
    queue.send([a_message(body="for a second")])
    assert bodies(queue.receive(most=10, wait=0, hidden=1)) == ["for a second"]
    assert queue.hide([receipts["for less"]], [1]) == []
    engine.wait(1.1)
    assert bodies(queue.receive(most=10, wait=0)) == ["for a second", "for less"]


def test_deleted_message_does_not_come_back(queue):
    queue.send([a_message(body=str(number)) for number in range(3)])
    gone, *_ = arrivals = queue.receive(most=10, wait=0)
    assert queue.delete([gone.receipt]) == []
    left = arrivals[1:]
    assert queue.hide([each.receipt for each in left], [0, 0]) == []
    assert bodies(queue.receive(most=10, wait=0)) == bodies(left)


def test_invalid_receipt_is_a_final_failure(queue):
    for refused in (queue.delete(["nothing"]), queue.hide(["nothing"], [0])):
        assert [(each.index, each.final) for each in refused] == [(0, True)]
