"""What every queue keeps, on every engine."""

import pytest

from dueline.core.message import BATCH_BYTES, Message
from dueline.core.ports import Depth
from dueline.errors import DuelineError, QueueNotFound
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


@pytest.mark.parametrize("sent", [Message.of(a_job(payload='{"a":  "\\u00e9"}')), a_message(attributes={})])
def test_message_arrives_unchanged(engine, queue, sent):
    assert queue.send([sent]) == []
    assert engine.visible(queue) == [sent]


def test_message_with_a_group_arrives(engine, queue):
    assert queue.send([a_message(group="emails")]) == []
    assert engine.visible(queue) == [a_message()]


def test_ten_messages_are_one_batch(engine, queue):
    assert queue.send([a_message(body=f"{number}") for number in range(10)]) == []
    assert sorted(message.body for message in engine.visible(queue)) == [f"{number}" for number in range(10)]


def test_batch_of_eleven_is_refused_whole(engine, queue):
    assert not is_taken(queue, *[a_message() for _ in range(11)])
    assert engine.visible(queue) == []


def test_delayed_message_is_not_visible_yet(engine, queue):
    assert queue.send([a_message(body="later", delay=900), a_message(body="now")]) == []
    assert [message.body for message in engine.visible(queue)] == ["now"]


def test_message_may_have_1_mib(engine, queue):
    assert is_taken(queue, a_message(body="x" * BATCH_BYTES, attributes={}))
    assert not is_taken(queue, a_message(body="x" * (BATCH_BYTES + 1), attributes={}))
    assert len(engine.visible(queue)) == 1


def test_depth_counts_waiting_and_delayed(queue):
    assert queue.depth() == Depth(waiting=0, in_flight=0, delayed=0)
    queue.send([a_message(delay=900), a_message(delay=900), a_message(delay=900), a_message(), a_message()])
    assert queue.depth() == Depth(waiting=2, in_flight=0, delayed=3)


@pytest.mark.parametrize("is_used", [False, True])
def test_deleted_queue_is_not_found(engine, queue, is_used):
    if is_used:
        queue.send([a_message()])
    engine.delete(queue)
    for call in (lambda: queue.send([a_message()]), queue.depth):
        with pytest.raises(QueueNotFound):
            call()
