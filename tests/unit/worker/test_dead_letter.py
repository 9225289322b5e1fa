import pytest

from dueline.errors import Unavailable
from dueline.model.folding import FOLDED
from dueline.model.message import BATCH_BYTES, Message
from dueline.operate.dead_letters import to_its_queue
from dueline.ports import Refusal
from dueline.worker.dead_letter import DeadLetter, with_failure
from dueline.worker.verdict import Dead
from tests.builders import a_job, a_message
from tests.work import SharedQueue, a_received_message

DEAD = Dead(error="TypeError", reason="attempt 3 of 3 failed: no")
FAILURE = {"dueline-error": "TypeError", "dueline-attempts": "3", "dueline-reason": "attempt 3 of 3 failed: no"}


def test_a_dead_job_keeps_its_payload_and_attributes_and_tells_its_failure():
    job, letters = a_job(tenant="acme"), SharedQueue()
    DeadLetter(received=a_received_message(job, receives=3), dead=DEAD).send(letters)
    sent = Message.of(job)
    assert letters.messages == [Message(body=sent.body, attributes={**sent.attributes, **FAILURE})]
    assert letters.messages[0].job() == job


def test_a_second_failure_takes_the_place_of_the_first():
    again = with_failure(with_failure(a_message(), DEAD, attempt=3), Dead(error="Discard", reason="gone"), attempt=1)
    assert again.attributes == {
        "colour": "green",
        "dueline-error": "Discard",
        "dueline-attempts": "1",
        "dueline-reason": "gone",
    }


def test_a_dead_letter_keeps_all_attributes_of_anyones_message_and_a_redrive_gives_them_back():
    many = a_message(attributes={f"a{number}": "1" for number in range(10)})
    letter = with_failure(many, DEAD, attempt=3)
    assert set(letter.attributes) == {*(f"a{number}" for number in range(6)), FOLDED, *FAILURE}
    assert to_its_queue(letter, levels=1).message == many


def test_a_trace_is_folded_before_what_a_job_needs():
    trace = {"tracestate": "a=1", "traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}
    job = a_job(payload="p", tenant="acme", priority=2, offloaded_bytes=9)
    sent = Message(body="p", attributes={**trace, **Message.of(job).attributes, "dueline-again": "1"})
    letter = with_failure(sent, DEAD, attempt=3)
    assert set(sent.attributes) - set(letter.attributes) == {*trace, "dueline-again"}
    assert to_its_queue(letter, levels=2).message.attributes == sent.attributes


@pytest.mark.parametrize("text", ["\x1b[31mno such customer\x1b[0m", "\0", "\ufffe", "\ud800"])
def test_whatever_an_error_says_its_job_becomes_a_dead_letter(text):
    letters = SharedQueue()
    DeadLetter(received=a_received_message(a_job()), dead=Dead(error=f"Odd{text}", reason=text)).send(letters)
    (letter,) = letters.messages
    assert letter.attributes["dueline-reason"] == text.encode("unicode_escape").decode()


def test_a_failure_is_told_as_far_as_there_is_room():
    full = Message(body="x" * BATCH_BYTES)
    assert with_failure(full, DEAD, attempt=3) == full
    nearly = Message(body="x" * (BATCH_BYTES - 60))
    assert set(with_failure(nearly, DEAD, attempt=3).attributes) == {"dueline-error", "dueline-attempts"}


def test_an_attribute_without_a_text_is_left_out_and_a_reason_is_never_empty():
    attributes = with_failure(
        a_message(attributes={"bytes": ""}), Dead(error="Discard", reason=""), attempt=1
    ).attributes
    assert "bytes" not in attributes
    assert attributes["dueline-reason"] == "none was given"


def test_what_sqs_does_not_take_is_to_be_tried_again():
    class Refusing:
        def send(self, messages):
            return [Refusal(index=0, reason="ServiceUnavailable", final=False)]

    with pytest.raises(Unavailable, match="ServiceUnavailable"):
        DeadLetter(received=a_received_message(), dead=DEAD).send(Refusing())
