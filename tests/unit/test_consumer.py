"""The Lambda consumer, over a queue in memory."""

import re

import pytest

import dueline
from dueline import consumer, rows
from dueline.consumer import address_of
from dueline.errors import Throttled
from dueline.message import Message
from dueline.working.event import Kind
from tests.builders import NOW, a_job, a_message
from tests.work import Events, SharedQueue, a_place

ARN = "arn:aws:sqs:eu-west-1:123456789012:dueline_emails"


class Function:
    """A Lambda function on a queue, as Lambda has it: a message that was done is deleted, and no other."""

    def __init__(self, call, monkeypatch, *, arn=ARN, once=False, levels=1, **settings):
        self.levels = [SharedQueue() for _ in range(levels)]
        self.place = a_place(*self.levels, **settings)
        self.events, self.asked, self.arn = Events(), [], arn
        monkeypatch.setattr(consumer, "connect", self._connect)
        self.handler = dueline.lambda_handler(once=once)(call)

    def _connect(self, deployment, queue):
        self.asked.append((deployment, queue))
        return self.place, self.events

    def work(self, *messages, level=0):
        """Have messages worked off; return the bodies of those that are to come again."""
        self.levels[level].send(messages)
        arrivals = self.levels[level].receive(most=10, wait=0)
        answer = self.handler({"Records": [record_of(each, self.arn) for each in arrivals]}, None)
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        self.levels[level].delete([each.receipt for each in arrivals if each.message_id not in failed])
        return [each.message.body for each in arrivals if each.message_id in failed]

    @property
    def letters(self):
        return self.place.dead_letters.messages


def record_of(arrival, arn):
    return {
        "messageId": arrival.message_id,
        "receiptHandle": arrival.receipt,
        "body": arrival.message.body,
        "attributes": {
            "ApproximateReceiveCount": str(arrival.receives),
            "SentTimestamp": str(int(arrival.sent.timestamp() * 1000)),
        },
        "messageAttributes": {
            name: {"dataType": "String", "stringValue": value} for name, value in arrival.message.attributes.items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "eu-west-1",
    }


def jobs(*payloads):
    return [Message.of(a_job(payload=payload)) for payload in payloads]


def test_each_job_is_worked_off_for_itself(monkeypatch):
    got = []

    def call(job):
        got.append((job.payload, job.attempt))
        if job.payload == 2:
            raise TypeError("no")
        if job.payload == 3:
            raise dueline.Discard("why")

    function = Function(call, monkeypatch)
    assert function.work(*jobs("1", "2", "3")) == ["2"]
    assert got == [(1, 1), (2, 1), (3, 1)]
    assert function.asked == [("dueline", "emails")]
    (letter,) = function.letters
    assert (letter.body, letter.attributes["dueline-reason"]) == ("3", "why")


def test_what_comes_again_waits_as_it_was_asked_to(monkeypatch):
    def call(job):
        raise dueline.Retry(600)

    function = Function(call, monkeypatch)
    assert function.work(*jobs("1")) == ["1"]
    (delivery,) = function.levels[0].queue.deliveries
    assert 595 < (delivery.visible - delivery.sent).total_seconds() < 605


def test_all_of_a_batch_may_fail(monkeypatch):
    def call(job):
        raise TypeError("no")

    assert Function(call, monkeypatch).work(*jobs("1", "2")) == ["1", "2"]


def test_a_cancelled_job_is_skipped(monkeypatch):
    got, job = [], a_job()
    function = Function(got.append, monkeypatch)
    function.place.table.write([rows.cancellation_row(job.id, at=NOW)])
    assert function.work(Message.of(job)) == []
    assert got == []
    assert [event.kind for event in function.events] == [Kind.SKIPPED]


def test_a_job_that_cannot_be_read_is_dead(monkeypatch):
    function = Function(print, monkeypatch)
    assert function.work(a_message(attributes={"dueline-id": "nonsense"})) == []
    assert function.letters[0].attributes["dueline-error"] == "InvalidJob"


def test_a_job_that_cannot_be_buried_comes_again(monkeypatch):
    def call(job):
        raise dueline.Discard("why")

    function = Function(call, monkeypatch)
    function.place.dead_letters.queue.gone = True
    assert function.work(*jobs("1")) == ["1"]


def test_once_a_job_that_comes_again_has_no_second_effect(monkeypatch):
    got, message = [], jobs("1")[0]
    function = Function(got.append, monkeypatch, once=True)
    assert function.work(message) == function.work(message) == []
    assert len(got) == 1


def test_which_level_it_is_its_name_tells(monkeypatch):
    def call(job):
        raise dueline.Retry(5)

    function = Function(call, monkeypatch, levels=2, arn=f"{ARN}_p2")
    assert function.work(*jobs("1"), level=1) == ["1"]
    assert ("hide", 1) in function.levels[1].asked
    assert ("hide", 1) not in function.levels[0].asked


def test_if_the_cancellations_cannot_be_read_the_whole_batch_comes_again(monkeypatch):
    function = Function(print, monkeypatch)

    def fail(keys):
        raise Throttled("slow down")

    monkeypatch.setattr(function.place.table, "read", fail)
    with pytest.raises(Throttled):
        function.work(*jobs("1"))


def test_a_function_may_be_decorated_without_arguments():
    @dueline.lambda_handler
    def handler(job):
        """Nothing."""

    assert isinstance(handler, consumer.Consumer)


def test_the_names_of_queues_are_read():
    assert address_of(ARN) == ("dueline", "emails", 0)
    assert address_of(f"{ARN}_p5") == ("dueline", "emails", 4)
    assert address_of("arn:aws:sqs:eu-west-1:123456789012:a-b_c-p2") == ("a-b", "c-p2", 0)


@pytest.mark.parametrize("arn", [ARN.replace("dueline_", "dueline-"), f"{ARN}_dlq", "arn:aws:sns:eu-west-1:1:a_b", ""])
def test_another_event_source_is_refused(arn):
    with pytest.raises(ValueError, match=f"the event is of {re.escape(repr(arn))}: it must be of a queue of Dueline"):
        address_of(arn)
