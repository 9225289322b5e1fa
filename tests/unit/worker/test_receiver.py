"""What a worker receives, and what it makes of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dueline.core import rows
from dueline.core.job import Partition
from dueline.core.message import Message
from dueline.errors import Unavailable
from dueline.testing import MemoryPayloads, VirtualClock
from dueline.worker.delivery import Discard, EventKind, lateness_of
from dueline.worker.prometheus import health_of
from dueline.worker.receiving import Receiver, prepare, seconds_until_due
from tests.builders import NOW, a_job, a_message, a_queue
from tests.work import Events, SharedQueue, a_claim, a_connection, a_received_message


def test_claim_counts_from_before_the_request():
    """Whatever visibility timeout the SQS queue itself has by now."""
    queue = SharedQueue(visibility_timeout=5)
    queue.send([a_message()])
    connection = a_connection(queue, visibility_timeout=60)
    before, requests = connection.clock.monotonic(), datetime.now(UTC)
    (claim,) = Receiver(connection).receive(most=10)
    assert before <= claim.received <= connection.clock.monotonic()
    assert claim.visible == claim.received + 60
    (delivery,) = queue.queue.deliveries
    assert (delivery.visible - requests).total_seconds() >= 60


@pytest.mark.parametrize(("timeout", "wait"), [(30, 5), (3600, 5), (12, 2), (5, 1)])
def test_long_poll_takes_a_sixth_of_a_claim(timeout, wait):
    waits, queue = [], Answering(lambda options: waits.append((options["most"], options["wait"])) or [])
    Receiver(a_connection(queue, visibility_timeout=timeout)).receive(most=7)
    # With nothing at any level, the first is waited for.
    Receiver(a_connection(queue, queue, visibility_timeout=timeout)).receive(most=1)
    assert waits == [(7, wait), (1, 0), (1, 0), (1, min(1, wait))]


def test_most_urgent_level_comes_first():
    levels = SharedQueue(), SharedQueue(), SharedQueue()
    for level, body in zip(levels[1:], "12", strict=True):
        level.send([a_message(body=body) for _ in range(2)])
    receiver = Receiver(a_connection(*levels))
    got = [[(claim.level, claim.arrival.message.body) for claim in receiver.receive(most=10)] for _ in range(2)]
    assert got == [[(1, "1")] * 2, [(2, "2")] * 2]


def test_lowest_level_is_not_starved():
    levels = SharedQueue(), SharedQueue(), SharedQueue()
    for level in (levels[0], levels[2]):
        for _ in range(10):
            level.send([a_message() for _ in range(10)])
    receiver = Receiver(a_connection(*levels))
    first = [claim.level for _ in range(20) for claim in receiver.receive(most=1)]
    assert (first.count(0), first.count(2)) == (19, 1)


class Answering(SharedQueue):
    """A queue whose polls are answered by a function of their options."""

    def __init__(self, answer):
        super().__init__()
        self.receive = lambda **options: answer(options)


def test_failing_level_rests():
    """A healthy level is long-polled meanwhile, and nobody backs off; but once none is healthy."""
    requests, events, clock = [], Events(), VirtualClock(NOW)
    started = clock.monotonic()

    def fail(_):
        requests.append(round(clock.monotonic() - started))
        raise Unavailable("AccessDenied")

    broken, empty = Answering(fail), Answering(lambda options: clock.sleep(options["wait"]) or [])
    receiver = Receiver(a_connection(empty, broken, clock=clock, report=events))
    while clock.monotonic() < started + 14:
        assert receiver.receive(most=1) == []
    assert requests == [0, 5, 10]
    assert [event.reason for event in events] == ["priority 2 was not polled: AccessDenied"] * 3
    receiver = Receiver(a_connection(broken, broken, report=events))
    for _ in range(2):
        with pytest.raises(Unavailable, match="AccessDenied"):
            receiver.receive(most=1)
    assert len(events) == 3 + 4


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_worker_is_healthy_while_no_level_answers(levels):
    """In a black hole of the network each request takes a minute: that is no hanging worker, however many levels."""
    ages, clock = [], VirtualClock(NOW)

    def time_out(_):
        clock.sleep(58)
        ages.append(clock.monotonic() - receiver.heartbeat)
        raise Unavailable("timed out")

    receiver = Receiver(a_connection(*(Answering(time_out) for _ in range(levels)), clock=clock))
    with pytest.raises(Unavailable):
        receiver.receive(most=1)
    assert [health_of({"emails": age}, {})["healthy"] for age in ages] == [True] * levels


# Prepared batches


def test_batch_is_sorted(monkeypatch):
    connection, requests = a_connection(), []
    ready, cancelled = a_job(), a_job()
    connection.table.write([rows.cancellation_row(cancelled.id, at=NOW)])
    read = connection.table.read
    monkeypatch.setattr(connection.table, "read", lambda keys: requests.append(len(keys)) or read(keys))
    foreign, broken = a_message(), a_message(attributes={"dueline-id": "nonsense"})
    claims = [a_claim(ready), a_claim(cancelled), a_claim(message=foreign), a_claim(message=broken)]
    assert prepare(claims, connection) == [claims[0], claims[2]]
    assert [each.cancelled for each in claims] == [False, True, False, False]
    assert claims[3].dead.error == "InvalidJob"
    assert [(event.kind, event.job) for event in connection.report] == [
        (EventKind.SKIPPED, str(cancelled.id)),
        (EventKind.FAILED, "nonsense"),
    ]
    assert requests == [2], "all cancellations together"


def test_job_of_another_queue_is_dead(monkeypatch):
    connection = a_connection()
    read = connection.table.read

    def as_iam_lets_it(keys):
        """`dynamodb:LeadingKeys` refuses a request as a whole."""
        if any(not partition.startswith("emails#") for partition, _ in keys):
            raise Unavailable("AccessDeniedException")
        return read(keys)

    monkeypatch.setattr(connection.table, "read", as_iam_lets_it)
    forwarded = a_job(partition=Partition(queue="invoices", number=0))
    claims = [a_claim(a_job()), a_claim(forwarded), a_claim(a_job())]
    assert prepare(claims, connection) == [claims[0], claims[2]]
    reason = f"message attribute dueline-id is {forwarded.id}: it must be of a job of the queue 'emails'"
    assert claims[1].dead.reason == reason


@pytest.mark.parametrize(("later", "seconds"), [(0.25, 0.25), (0.0, 0.0), (-3.0, 0.0)])
def test_only_precise_queues_hold_jobs(later, seconds):
    clock = VirtualClock(NOW)
    job = a_job(due=NOW + timedelta(seconds=later))
    assert seconds_until_due(a_received_message(job), a_connection(clock=clock, queue=a_queue(precise=True))) == seconds
    assert seconds_until_due(a_received_message(job), a_connection(clock=clock)) == 0.0


# What a handler gets


def for_handler(received, *, now=NOW):
    job = received.for_handler(lateness=lateness_of(received.due, now=now), max_attempts=10)
    return replace(job, payload=received.payload(MemoryPayloads().read))


def test_a_handler_gets_what_was_scheduled():
    of_run = {"schedule": "digest", "scheduled_for": NOW}
    job = a_job(payload='{"to":"ada"}', tenant="acme", priority=2, key="ann", kind="welcome", **of_run)
    got = for_handler(a_received_message(job, receives=3), now=job.id.due + timedelta(seconds=2))
    assert (got.id, got.queue, got.payload, got.due) == (str(job.id), "emails", {"to": "ada"}, job.id.due)
    assert (got.attempt, got.tenant, got.priority, got.key, got.kind) == (3, "acme", 2, "ann", "welcome")
    assert (got.lateness, got.schedule, got.scheduled_for) == (2.0, "digest", NOW)
    assert "ada" not in repr(got)


def test_a_message_that_others_sent_is_a_job_too():
    received = a_received_message(message=a_message(body="[1]"))
    got = for_handler(received, now=NOW + timedelta(seconds=1))
    assert (got.id, got.payload, got.due, got.lateness) == (received.arrival.message_id, [1], NOW, 1.0)
    assert received.job is None


@pytest.mark.parametrize(
    "received",
    [
        a_received_message(message=a_message(body="no JSON")),
        a_received_message(message=a_message(body="[" * 100_000)),
        a_received_message(a_job(payload="[]", offloaded_bytes=300_000)),
    ],
    ids=["text", "deep", "no pointer"],
)
def test_non_json_payload_is_discarded(received):
    with pytest.raises(Discard, match="its payload is no JSON"):
        for_handler(received)


def test_redriven_job_has_another_once_key():
    sent = Message.of(a_job())
    again = Message(body=sent.body, attributes={**sent.attributes, "dueline-again": "1"})
    received = a_received_message(message=again)
    assert received.once_key == f"{received.id}/1"
    assert a_received_message(message=sent).once_key == received.id


# New settings


def refreshed(connection, new):
    """Have a connection read new settings; return what it reported."""
    connection.reload = lambda: new
    connection.refresh()
    return [(event.kind, event.reason) for event in connection.report]


def test_short_visibility_timeout_is_ignored():
    connection = a_connection(visibility_timeout=60)
    ((kind, reason),) = refreshed(connection, a_connection(visibility_timeout=4))
    assert kind is EventKind.TROUBLE
    assert "visibility_timeout of queue emails is 4: for a worker" in reason
    assert connection.settings.visibility_timeout == 60


def test_only_current_levels_are_polled():
    one, two = SharedQueue(), SharedQueue()
    connection = a_connection(one)
    refreshed(connection, a_connection(one, two))
    two.send([a_message()])
    (claim,) = Receiver(connection).receive(most=1)
    refreshed(connection, a_connection(one))
    assert Receiver(connection).receive(most=1) == []
    assert two.requests == [("receive", 1)]
    assert connection.levels[claim.level] is two
