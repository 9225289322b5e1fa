"""What every queue keeps, on every engine."""

import pytest

from dueline.errors import DuelineError, QueueNotFound
from dueline.model.message import BATCH_BYTES, Message
from dueline.ports import Depth
from tests.builders import a_job, a_message
from tests.contract.engines import QUEUES

pytestmark = pytest.mark.parametrize("engine", QUEUES, indirect=True)


@pytest.fixture
def queue(engine):
    return engine.queue()


def is_taken(queue, *messages):
    """Tell whether a queue takes messages; an engine may refuse them by name or altogether."""
    try:
        return queue.send(messages) == []
    except (ValueError, DuelineError):
        return False


def test_a_message_arrives_with_its_body_and_attributes_untouched(engine, queue):
    sent = Message.of(a_job(payload='{"a":  "\\u00e9"}'))
    assert queue.send([sent]) == []
    assert engine.visible(queue) == [sent]


def test_a_message_without_attributes_arrives(engine, queue):
    queue.send([a_message(attributes={})])
    assert engine.visible(queue) == [a_message(attributes={})]


def test_a_message_with_a_group_arrives(engine, queue):
    assert queue.send([a_message(group="emails")]) == []
    assert engine.visible(queue) == [a_message()]


def test_ten_messages_are_one_batch(engine, queue):
    assert queue.send([a_message(body=f"{number}") for number in range(10)]) == []
    assert sorted(message.body for message in engine.visible(queue)) == [f"{number}" for number in range(10)]


def test_more_messages_than_a_batch_takes_are_refused_and_none_is_sent(engine, queue):
    assert not is_taken(queue, *[a_message() for _ in range(11)])
    assert engine.visible(queue) == []


def test_a_delayed_message_is_not_visible_yet(engine, queue):
    assert queue.send([a_message(body="later", delay=900), a_message(body="now")]) == []
    assert [message.body for message in engine.visible(queue)] == ["now"]


def test_a_delay_over_900_seconds_is_refused(engine, queue):
    assert not is_taken(queue, a_message(delay=901))
    assert engine.visible(queue) == []


def test_a_message_of_1_mib_is_sent_and_a_byte_more_is_refused(engine, queue):
    assert is_taken(queue, a_message(body="x" * BATCH_BYTES, attributes={}))
    assert not is_taken(queue, a_message(body="x" * (BATCH_BYTES + 1), attributes={}))
    assert len(engine.visible(queue)) == 1


def test_a_queue_tells_how_many_messages_wait_and_how_many_are_held_back(queue):
    assert queue.depth() == Depth(waiting=0, in_flight=0, delayed=0)
    queue.send([a_message(delay=900), a_message(delay=900), a_message(delay=900), a_message(), a_message()])
    assert queue.depth() == Depth(waiting=2, in_flight=0, delayed=3)


def test_a_queue_that_is_gone_tells_nothing(engine, queue):
    engine.delete(queue)
    with pytest.raises(QueueNotFound):
        queue.depth()


def test_a_queue_that_never_was_is_not_found(engine, queue):
    engine.delete(queue)
    with pytest.raises(QueueNotFound):
        queue.send([a_message()])


def test_a_queue_that_vanished_after_it_was_used_is_not_found(engine, queue):
    queue.send([a_message()])
    engine.delete(queue)
    with pytest.raises(QueueNotFound):
        queue.send([a_message()])
