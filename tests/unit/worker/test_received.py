from datetime import timedelta

import pytest

from dueline.core.message import Message
from dueline.errors import InvalidJob
from dueline.testing import MemoryPayloads
from dueline.worker.delivery import Discard, Lateness, ReceivedMessage
from tests.builders import NOW, a_job, a_message
from tests.work import a_claim, a_received_message


def for_handler(received, *, now=NOW, payloads=None):
    return received.for_handler(
        lateness=Lateness.of(received.due, now=now, behind=0.5), read=(payloads or MemoryPayloads()).read
    )


def test_a_handler_gets_what_was_scheduled():
    job = a_job(payload='{"to":"ada"}', tenant="acme", priority=2)
    got = for_handler(a_received_message(job, receives=3), now=job.id.due + timedelta(seconds=2))
    assert (got.id, got.queue, got.payload, got.due) == (str(job.id), "emails", {"to": "ada"}, job.id.due)
    assert (got.attempt, got.tenant, got.priority) == (3, "acme", 2)
    assert (got.lateness, got.lateness_at_most) == (2.0, 2.5)


def test_handler_gets_schedule_and_scheduled_for():
    got = for_handler(a_received_message(a_job(schedule="digest", scheduled_for=NOW)))
    assert (got.schedule, got.scheduled_for) == ("digest", NOW)
    other = for_handler(a_received_message(a_job()))
    assert (other.schedule, other.scheduled_for) == (None, None)


def test_a_payload_is_not_shown():
    assert "ada" not in repr(for_handler(a_received_message(a_job(payload='"ada"'))))


def test_a_large_payload_is_read_where_it_is_kept():
    payloads = MemoryPayloads()
    pointer = payloads.put("0016/emails/x", '{"large":1}')
    job = a_job(payload=pointer.text, offloaded_bytes=11)
    assert for_handler(a_received_message(job), payloads=payloads).payload == {"large": 1}


def test_a_message_that_others_sent_is_a_job_too():
    received = a_received_message(message=a_message(body="[1]"))
    got = for_handler(received, now=NOW + timedelta(seconds=1))
    assert (got.id, got.payload, got.due, got.lateness) == (received.claim.arrival.message_id, [1], NOW, 1.0)
    assert received.job_id is None


@pytest.mark.parametrize("body", ["no JSON", "[" * 100_000])
def test_a_payload_that_is_no_json_can_never_be_handled(body):
    with pytest.raises(Discard, match="its payload is no JSON"):
        for_handler(a_received_message(message=a_message(body=body)))


def test_a_message_of_ours_that_cannot_be_read_is_refused():
    with pytest.raises(InvalidJob):
        ReceivedMessage.of(a_claim(message=a_message(attributes={"dueline-id": "nonsense"})), queue="emails")


def test_redriven_interrupted_job_has_another_once_key():
    sent = Message.of(a_job())
    again = Message(body=sent.body, attributes={**sent.attributes, "dueline-again": "1"})
    received = a_received_message(message=again)
    assert received.once_key == f"{received.id}/1"
    assert a_received_message(message=sent).once_key == received.id
