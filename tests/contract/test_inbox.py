"""What every inbox keeps, on every engine."""

import pytest

from dueline.core.message import Message, TypedText, type_of
from dueline.errors import QueueNotFound
from dueline.operations.dead_letters import to_its_queue
from tests.builders import a_job, a_message
from tests.contract.engines import QUEUES

pytestmark = pytest.mark.parametrize("engine", QUEUES, indirect=True)


@pytest.fixture
def queue(engine):
    return engine.queue()


@pytest.fixture
def inbox(engine, queue):
    return engine.inbox(queue)


def bodies(arrivals):
    return sorted(each.message.body for each in arrivals)


def test_message_is_received_as_sent(queue, inbox):
    sent = Message.of(a_job())
    queue.send([sent])
    (first,) = inbox.receive(most=10, wait=0, hidden=0)
    (again,) = inbox.receive(most=10, wait=0)
    assert first.message == again.message == sent
    assert (first.message_id, first.sent) == (again.message_id, again.sent)
    assert (first.receives, again.receives) == (1, 2)
    assert first.receipt != again.receipt


def test_attributes_are_redriven_with_types(queue, inbox):
    typed = {
        "sig": TypedText.of_bytes(b"\x00\xff"),
        "count": TypedText("42", data_type="Number"),
        "uuid": TypedText("x", data_type="String.uuid"),
        "text": "y",
    }
    queue.send([a_message(attributes=typed)])
    (first,) = inbox.receive(most=10, wait=0)
    inbox.delete([first.receipt])
    assert queue.send([to_its_queue(first.message, levels=1).message]) == []
    (again,) = inbox.receive(most=10, wait=0)
    assert again.message.attributes == typed
    types = {name: type_of(name, value) for name, value in again.message.attributes.items()}
    assert types == {"sig": "Binary", "count": "Number", "uuid": "String.uuid", "text": "String"}


def test_receive_returns_at_most_the_limit(queue, inbox):
    queue.send([a_message(body=str(number)) for number in range(10)])
    first, second = inbox.receive(most=3, wait=0), inbox.receive(most=10, wait=0)
    assert (len(first), len(second)) == (3, 7)
    assert len(set(bodies(first + second))) == 10


def test_empty_queue_returns_nothing(inbox):
    assert inbox.receive(most=10, wait=0) == []


def test_message_is_hidden_until_its_timeout(engine, queue, inbox):
    queue.send([a_message(body="for long")])
    assert bodies(inbox.receive(most=10, wait=0, hidden=600)) == ["for long"]
    queue.send([a_message(body="for a second")])
    assert bodies(inbox.receive(most=10, wait=0, hidden=1)) == ["for a second"]
    engine.wait(1.1)
    assert bodies(inbox.receive(most=10, wait=0)) == ["for a second"]


def test_deleted_message_does_not_come_back(queue, inbox):
    queue.send([a_message(body=str(number)) for number in range(3)])
    gone, *_ = arrivals = inbox.receive(most=10, wait=0)
    assert inbox.delete([gone.receipt]) == []
    left = arrivals[1:]
    assert inbox.hide([each.receipt for each in left], [0, 0]) == []
    assert bodies(inbox.receive(most=10, wait=0)) == bodies(left)


def test_hide_sets_the_visibility_again(engine, queue, inbox):
    queue.send([a_message()])
    (arrival,) = inbox.receive(most=10, wait=0, hidden=600)
    assert inbox.hide([arrival.receipt], [1]) == []
    engine.wait(1.1)
    assert len(inbox.receive(most=10, wait=0)) == 1


def test_invalid_receipt_is_a_final_failure(inbox):
    for refused in (inbox.delete(["nothing"]), inbox.hide(["nothing"], [0])):
        assert [(each.index, each.final) for each in refused] == [(0, True)]


def test_deleted_queue_is_not_found(engine, queue, inbox):
    engine.delete(queue)
    for call in (lambda: inbox.receive(most=1, wait=0), lambda: inbox.delete(["1"]), lambda: inbox.hide(["1"], [0])):
        with pytest.raises(QueueNotFound):
            call()
