"""The Lambda consumer, over a queue in memory."""

import re

import pytest

import dueline
from dueline.core import rows
from dueline.core.message import BATCH_MESSAGES, Message, batches
from dueline.core.ports import READ_KEYS, BatchFailure
from dueline.errors import InvalidJob, Throttled
from dueline.testing.local import event_of
from dueline.worker import lambda_consumer
from dueline.worker.delivery import EventKind
from dueline.worker.lambda_consumer import address_of
from tests.builders import NOW, a_job, a_message
from tests.work import Events, SharedQueue, a_connection

ARN = "arn:aws:sqs:eu-west-1:123456789012:dueline_emails"


class Function:
    """A Lambda function on a queue, as Lambda has it: a message that was done is deleted, and no other."""

    def __init__(self, call, monkeypatch, *, arn=ARN, levels=1, once=False, on_error=None, on_dead=None, **settings):
        self.levels = [SharedQueue() for _ in range(levels)]
        self.events, self.queried, self.arn = Events(), [], arn
        self.connection = a_connection(*self.levels, report=self.events, **settings)
        monkeypatch.setattr(lambda_consumer, "connect", self._connect)
        by_kind, options = isinstance(call, dict), {"once": once, "on_error": on_error, "on_dead": on_dead}
        self.handler = dueline.lambda_handler(call, **options) if by_kind else dueline.lambda_handler(**options)(call)

    def _connect(self, deployment, queue):
        self.queried.append((deployment, queue))
        return self.connection

    def work(self, *messages, level=0):
        """Have messages processed; return the bodies of those that are to come again."""
        for some in batches(messages, size=lambda _: 0):
            self.levels[level].send(some)
        arrivals = [each for _ in messages[::BATCH_MESSAGES] for each in self.levels[level].receive(most=10, wait=0)]
        answer = self.handler(event_of(arrivals, name=self.arn.rpartition(":")[2]), None)
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        for each in arrivals:
            if each.message_id not in failed:
                self.levels[level].delete([each.receipt])
        return [each.message.body for each in arrivals if each.message_id in failed]

    @property
    def dead_letter_queue(self):
        return self.connection.dead_letters.messages

    @property
    def troubles(self):
        return [event.reason for event in self.events.of(EventKind.TROUBLE)]


def jobs(*payloads):
    return [Message.of(a_job(payload=payload)) for payload in payloads]


@pytest.mark.parametrize("of", [lambda call: call, lambda call: {None: call}])
def test_each_job_succeeds_or_fails_alone(monkeypatch, of):
    got, calls = [], []

    def call(job):
        got.append((job.payload, job.attempt))
        if job.payload > 1:
            raise dueline.Discard("why") if job.payload == 3 else TypeError("no")

    function = Function(
        of(call),
        monkeypatch,
        on_error=lambda job, error: calls.append(("error", job.payload, str(error))),
        on_dead=lambda job, error: calls.append(("dead", job.payload, str(error))),
    )
    assert function.work(*jobs("1", "2", "3")) == ["2"]
    assert got == [(1, 1), (2, 1), (3, 1)]
    assert function.queried == [("dueline", "emails")]
    (dead_letter,) = function.dead_letter_queue
    assert (dead_letter.body, dead_letter.attributes["dueline-reason"]) == ("3", "why")
    assert calls == [("error", 2, "no"), ("dead", 3, "why")]
    assert "in call" in function.events.of(EventKind.RETRIED)[0].stack


def requests_for_600_seconds(job):
    raise dueline.Retry(600)


@pytest.mark.parametrize(
    "answer", [[BatchFailure(index=0, reason="no", final=False)], Throttled("no"), InvalidJob("no")]
)
def test_early_retry_is_reported(monkeypatch, answer):
    function = Function(requests_for_600_seconds, monkeypatch)

    def refuse(receipts, seconds):
        if isinstance(answer, Exception):
            raise answer
        return answer

    function.levels[0].hide = refuse
    assert function.work(*jobs("1")) == ["1"]
    assert function.troubles == ["it comes after the visibility_timeout of its queue, and not after 600 s: no"]


def test_failed_read_leaves_later_records_fresh(monkeypatch):
    got, jobs_of = [], [a_job(payload=str(number)) for number in range(201)]
    cancellation = rows.cancellation_row(jobs_of[-1].id, at=NOW)
    function = Function(
        lambda job: (got.append(job.payload), function.connection.table.write([cancellation])), monkeypatch
    )
    read, requests = function.connection.table.read, []

    def fail_first(keys):
        requests.append(len(keys))
        if len(requests) == 1:
            raise KeyError("Responses")
        return read(keys)

    monkeypatch.setattr(function.connection.table, "read", fail_first)
    assert function.work(*map(Message.of, jobs_of)) == [str(number) for number in range(100)]
    assert (got, max(requests) <= READ_KEYS) == ([*range(100, 200)], True)
    assert function.troubles == ["KeyError: 'Responses'"]


def test_unreadable_job_is_a_dead_letter(monkeypatch):
    function = Function(print, monkeypatch)
    assert function.work(a_message(attributes={"dueline-id": "nonsense"})) == []
    assert function.dead_letter_queue[0].attributes["dueline-error"] == "InvalidJob"
    (reported,) = function.events.of(EventKind.FAILED)
    assert (reported.error, "nonsense" in reported.reason) == ("InvalidJob", True)


def test_unsent_dead_letter_comes_again(monkeypatch):
    def discard(job):
        raise dueline.Discard("why")

    function = Function(discard, monkeypatch)
    function.connection.dead_letters.queue.gone = True
    assert function.work(*jobs("1")) == ["1"]


def test_record_that_cannot_start_comes_again(monkeypatch):
    def throttled(*_):
        raise Throttled("slow down")

    function = Function(print, monkeypatch, once=True, max_receives=1)
    function.connection.once = throttled
    assert function.work(*jobs("1")) == ["1"]
    assert function.dead_letter_queue == []
    assert function.troubles


def test_level_is_known_by_its_name(monkeypatch):
    function = Function(requests_for_600_seconds, monkeypatch, levels=2, arn=f"{ARN}_p2")
    assert function.work(*jobs("1"), level=1) == ["1"]
    assert ("hide", 1) in function.levels[1].requests
    assert ("hide", 1) not in function.levels[0].requests


def test_functions_by_kind_get_their_jobs(monkeypatch):
    got = []
    calls = {"welcome": lambda job: got.append(("welcome", job.key)), None: lambda job: got.append((None, job.kind))}
    function = Function(calls, monkeypatch)
    kinds = (a_job(kind="welcome", key="ann"), a_job(kind="digest"), a_job())
    assert [function.work(Message.of(job)) for job in kinds] == [[]] * 3
    assert got == [("welcome", "ann"), (None, "digest"), (None, None)]
    assert len(function.queried) == 1, "or each event waits for a connection of its own"


@pytest.mark.parametrize(
    ("misuse", "wrong"),
    [
        (lambda: dueline.lambda_handler({}), "the handlers are {}"),
        (lambda: dueline.lambda_handler({"": print}), "kind is ''"),
        (lambda: dueline.lambda_handler({"welcome": 7}), "the handler is 7: it must be a function"),
        (lambda: dueline.lambda_handler(lambda: None), "of the arguments ()"),
        (lambda: dueline.lambda_handler(once=True)(lambda: None), "of the arguments ()"),
    ],
)
def test_misused_decorator_points_at_the_users_line(misuse, wrong):
    with pytest.raises(ValueError, match=re.escape(wrong)) as raised:
        misuse()
    assert raised.value.__notes__ == [f"in {__file__}:{misuse.__code__.co_firstlineno}"]


def test_the_names_of_queues_are_read():
    assert address_of(ARN) == ("dueline", "emails", 0)
    assert address_of(f"{ARN}_p5") == ("dueline", "emails", 4)
    assert address_of("arn:aws:sqs:eu-west-1:123456789012:a-b_c-p2") == ("a-b", "c-p2", 0)


@pytest.mark.parametrize("arn", [ARN.replace("dueline_", "dueline-"), f"{ARN}_dlq", "arn:aws:sns:eu-west-1:1:a_b", ""])
def test_another_event_source_is_refused(arn):
    with pytest.raises(ValueError, match=f"the event is of {re.escape(repr(arn))}: it must be of a queue of Dueline"):
        address_of(arn)
