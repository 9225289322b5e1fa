import pytest

from dueline.core.message import BATCH_BYTES, FOLDED, Message, TypedText
from dueline.core.ports import BatchFailure
from dueline.errors import Unavailable
from dueline.operations.dead_letters import to_its_queue
from dueline.worker.delivery import DeadLetter, DeadLettered, with_failure
from tests.builders import a_job, a_message
from tests.work import SharedQueue, a_received_message

DEAD = DeadLettered(error="TypeError", reason="attempt 3 of 3 failed: no")
FAILURE = {"dueline-error": "TypeError", "dueline-attempts": "3", "dueline-reason": "attempt 3 of 3 failed: no"}


def test_dead_letter_keeps_payload_and_adds_its_failure():
    job, dead_letter_queue = a_job(tenant="acme"), SharedQueue()
    DeadLetter(received=a_received_message(job, receives=3), dead=DEAD).send(dead_letter_queue)
    sent = Message.of(job)
    assert dead_letter_queue.messages == [Message(body=sent.body, attributes={**sent.attributes, **FAILURE})]
    assert dead_letter_queue.messages[0].job() == job


def test_redrive_restores_folded_attributes():
    many = a_message(attributes={f"a{number}": "1" for number in range(10)})
    dead_letter = with_failure(many, DEAD, attempt=3)
    assert set(dead_letter.attributes) == {*(f"a{number}" for number in range(6)), FOLDED, *FAILURE}
    assert to_its_queue(dead_letter, levels=1).message == many


def test_a_trace_is_folded_before_what_a_job_needs():
    trace = {"tracestate": "a=1", "traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}
    job = a_job(payload="p", tenant="acme", priority=2, offloaded_bytes=9)
    sent = Message(body="p", attributes={**trace, **Message.of(job).attributes, "dueline-again": "1"})
    dead_letter = with_failure(sent, DEAD, attempt=3)
    assert set(sent.attributes) - set(dead_letter.attributes) == {*trace, "dueline-again"}
    assert to_its_queue(dead_letter, levels=2).message.attributes == sent.attributes


@pytest.mark.parametrize("text", ["\x1b[31mno such customer\x1b[0m", "\0", "\ufffe", "\ud800"])
def test_whatever_an_error_says_its_job_becomes_a_dead_letter(text):
    dead_letter_queue = SharedQueue()
    DeadLetter(received=a_received_message(a_job()), dead=DeadLettered(error=f"Odd{text}", reason=text)).send(
        dead_letter_queue
    )
    (dead_letter,) = dead_letter_queue.messages
    assert dead_letter.attributes["dueline-reason"] == text.encode("unicode_escape").decode()


def test_a_letter_that_sqs_refuses_goes_as_it_came():
    class Picky(SharedQueue):
        def send(self, messages):
            refused = "dueline-error" in messages[0].attributes
            return (
                [BatchFailure(index=0, reason="InvalidParameterValue", final=True)]
                if refused
                else super().send(messages)
            )

    dead_letter_queue, received = Picky(), a_received_message(a_job())
    DeadLetter(received=received, dead=DEAD).send(dead_letter_queue)
    assert dead_letter_queue.messages == [received.claim.arrival.message]


def test_a_failure_is_reported_as_far_as_there_is_room():
    full = Message(body="x" * BATCH_BYTES)
    assert with_failure(full, DEAD, attempt=3) == full
    nearly = Message(body="x" * (BATCH_BYTES - 60))
    assert set(with_failure(nearly, DEAD, attempt=3).attributes) == {"dueline-error", "dueline-attempts"}


def test_binary_attribute_stays_and_reason_is_never_empty():
    binary = TypedText.of_bytes(b"\x01")
    dead_letter = with_failure(
        a_message(attributes={"bytes": binary}), DeadLettered(error="Discard", reason=""), attempt=1
    )
    assert dead_letter.attributes["bytes"] is binary
    assert dead_letter.attributes["dueline-reason"] == "none was given"


def test_what_sqs_does_not_take_is_to_be_tried_again():
    class Refusing:
        def send(self, messages):
            return [BatchFailure(index=0, reason="ServiceUnavailable", final=False)]

    with pytest.raises(Unavailable, match="ServiceUnavailable"):
        DeadLetter(received=a_received_message(), dead=DEAD).send(Refusing())
