"""What a worker receives, and what it makes of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dueline.core import rows
from dueline.core.job import Partition
from dueline.core.message import Message
from dueline.errors import Unavailable
from dueline.testing import MemoryPayloads, VirtualClock
from dueline.worker.claims import Claims
from dueline.worker.delivery import Discard, lateness_of
from dueline.worker.events import EventKind
from dueline.worker.limits import RateLimiter
from dueline.worker.prometheus import health_of
from dueline.worker.receiving import ReceiveLoop, prepare, seconds_until_due
from tests.builders import NOW, a_job, a_message, a_queue
from tests.work import Events, SharedQueue, a_claim, a_connection, a_received_message


def a_loop(connection):
    return ReceiveLoop(
        connection,
        claims=Claims(connection, concurrency=10),
        limiter=RateLimiter(connection),
        may_receive=lambda: True,
        on_receive=print,
        jitter=lambda: 1.0,
    )


@pytest.fixture
def levels():
    return SharedQueue(), SharedQueue(), SharedQueue()


def test_claim_counts_from_before_the_request():
    """Whatever visibility timeout the SQS queue itself has by now."""
    queue = SharedQueue(visibility_timeout=5)
    queue.send([a_message()])
    connection = a_connection(queue, visibility_timeout=60)
    before, requests = connection.clock.monotonic(), datetime.now(UTC)
    (claim,) = a_loop(connection).receive(most=10)
    assert before <= claim.received <= connection.clock.monotonic()
    assert claim.visible == claim.received + 60
    (delivery,) = queue.queue.deliveries
    assert (delivery.visible - requests).total_seconds() >= 60


@pytest.mark.parametrize(("timeout", "wait"), [(30, 5), (3600, 5), (12, 2), (5, 1)])
def test_long_poll_takes_a_sixth_of_a_claim(timeout, wait):
    class Recorded(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            waits.append((most, wait))
            return []

    waits = []
    a_loop(a_connection(Recorded(), visibility_timeout=timeout)).receive(most=7)
    assert waits == [(7, wait)]
    waits.clear()
    # With nothing at any level, the first is waited for.
    a_loop(a_connection(Recorded(), Recorded(), visibility_timeout=timeout)).receive(most=1)
    assert waits == [(1, 0), (1, 0), (1, 1)]


def test_most_urgent_level_comes_first(levels):
    for level, body in zip(levels[1:], "12", strict=True):
        level.send([a_message(body=body) for _ in range(2)])
    receiver = a_loop(a_connection(*levels))
    got = [[(claim.level, claim.arrival.message.body) for claim in receiver.receive(most=10)] for _ in range(2)]
    assert got == [[(1, "1")] * 2, [(2, "2")] * 2]


def test_lowest_level_is_not_starved(levels):
    for level in (levels[0], levels[2]):
        for _ in range(10):
            level.send([a_message() for _ in range(10)])
    receiver = a_loop(a_connection(*levels))
    first = [claim.level for _ in range(20) for claim in receiver.receive(most=1)]
    assert (first.count(0), first.count(2)) == (19, 1)


class Failing(SharedQueue):
    def receive(self, *, most, wait, hidden=None):
        raise Unavailable("AccessDenied")


def test_failing_level_rests():
    """A healthy level is long-polled meanwhile, and nobody backs off."""

    class Broken(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            requests.append(round(clock.monotonic() - started))
            raise Unavailable("AccessDenied")

    class Empty(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            clock.sleep(wait)
            return []

    requests, events, clock = [], Events(), VirtualClock(NOW)
    started = clock.monotonic()
    receiver = a_loop(a_connection(Empty(), Broken(), clock=clock, report=events))
    while clock.monotonic() < started + 14:
        assert receiver.receive(most=1) == []
    assert requests == [0, 5, 10]
    assert [event.reason for event in events] == ["priority 2 was not polled: AccessDenied"] * 3


def test_failure_of_all_levels_raises():
    events = Events()
    receiver = a_loop(a_connection(Failing(), Failing(), report=events))
    for _ in range(2):
        with pytest.raises(Unavailable, match="AccessDenied"):
            receiver.receive(most=1)
    assert len(events) == 4


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_worker_is_healthy_while_no_level_answers(levels):
    """In a black hole of the network each request takes a minute: that is no hanging worker, however many levels."""

    class BlackHole(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            clock.sleep(58)
            ages.append(clock.monotonic() - loop.heartbeat)
            raise Unavailable("timed out")

    ages, clock = [], VirtualClock(NOW)
    connection = a_connection(*(BlackHole() for _ in range(levels)), clock=clock)
    loop = a_loop(connection)
    with pytest.raises(Unavailable):
        loop.receive_once()
    assert [health_of({"emails": age}, {})["healthy"] for age in ages] == [True] * levels


# Prepared batches


def test_batch_is_sorted():
    connection = a_connection()
    ready, cancelled = a_job(), a_job()
    connection.table.write([rows.cancellation_row(cancelled.id, at=NOW)])
    foreign, broken = a_message(), a_message(attributes={"dueline-id": "nonsense"})
    claims = [a_claim(ready), a_claim(cancelled), a_claim(message=foreign), a_claim(message=broken)]
    assert prepare(claims, connection) == [claims[0], claims[2]]
    assert [each.cancelled for each in claims] == [False, True, False, False]
    assert claims[3].dead.error == "InvalidJob"
    assert [(event.kind, event.job) for event in connection.report] == [
        (EventKind.SKIPPED, str(cancelled.id)),
        (EventKind.FAILED, "nonsense"),
    ]


def test_cancellations_are_read_together(monkeypatch):
    connection, requests = a_connection(), []
    read = connection.table.read
    monkeypatch.setattr(connection.table, "read", lambda keys: requests.append(len(keys)) or read(keys))
    prepare([a_claim(a_job()) for _ in range(10)], connection)
    assert requests == [10]


def test_job_of_another_queue_is_dead(monkeypatch):
    connection, read = a_connection(), None
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


def for_handler(received, *, now=NOW, payloads=None):
    job = received.for_handler(lateness=lateness_of(received.due, now=now), max_attempts=10)
    return replace(job, payload=received.payload((payloads or MemoryPayloads()).read))


def test_a_handler_gets_what_was_scheduled():
    of_run = {"schedule": "digest", "scheduled_for": NOW}
    job = a_job(payload='{"to":"ada"}', tenant="acme", priority=2, key="ann", kind="welcome", **of_run)
    got = for_handler(a_received_message(job, receives=3), now=job.id.due + timedelta(seconds=2))
    assert (got.id, got.queue, got.payload, got.due) == (str(job.id), "emails", {"to": "ada"}, job.id.due)
    assert (got.attempt, got.tenant, got.priority, got.key, got.kind) == (3, "acme", 2, "ann", "welcome")
    assert (got.lateness, got.schedule, got.scheduled_for) == (2.0, "digest", NOW)


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
    assert (got.id, got.payload, got.due, got.lateness) == (received.arrival.message_id, [1], NOW, 1.0)
    assert received.job is None


@pytest.mark.parametrize("body", ["no JSON", "[" * 100_000])
def test_non_json_payload_is_discarded(body):
    with pytest.raises(Discard, match="its payload is no JSON"):
        for_handler(a_received_message(message=a_message(body=body)))


def test_payload_without_a_pointer_is_discarded():
    with pytest.raises(Discard, match="its payload is no JSON"):
        for_handler(a_received_message(a_job(payload="[]", offloaded_bytes=300_000)))


def test_redriven_job_has_another_once_key():
    sent = Message.of(a_job())
    again = Message(body=sent.body, attributes={**sent.attributes, "dueline-again": "1"})
    received = a_received_message(message=again)
    assert received.once_key == f"{received.id}/1"
    assert a_received_message(message=sent).once_key == received.id


# New settings


class Deployed:
    """A connection, and what is published of its queue by now."""

    def __init__(self, *levels, **settings):
        self.levels, self.settings = levels or (SharedQueue(),), settings
        self.events = Events()
        self.connection = replace(self.now(), reload=self.now)

    def now(self):
        return a_connection(*self.levels, report=self.events, clock=VirtualClock(NOW), **self.settings)

    def changed(self, *levels, **settings):
        self.levels, self.settings = levels or self.levels, settings
        self.connection.refresh()
        return [(event.kind, event.reason) for event in self.events]


def test_new_visibility_timeout_is_applied():
    deployed = Deployed(visibility_timeout=60)
    assert deployed.changed(visibility_timeout=5) == [(EventKind.CHANGED, "")]
    assert deployed.connection.settings.visibility_timeout == 5


def test_only_current_levels_are_polled():
    one, two = SharedQueue(), SharedQueue()
    deployed = Deployed(one)
    deployed.changed(one, two)
    two.send([a_message()])
    (claim,) = a_loop(deployed.connection).receive(most=1)
    deployed.changed(one)
    assert a_loop(deployed.connection).receive(most=1) == []
    assert two.requests == [("receive", 1)]
    assert deployed.connection.levels[claim.level] is two


@pytest.mark.parametrize("hidden", [0, 4])
def test_short_visibility_timeout_is_ignored(hidden):
    deployed = Deployed(visibility_timeout=60)
    ((kind, reason),) = deployed.changed(visibility_timeout=hidden)
    assert (kind, f"visibility_timeout of queue emails is {hidden}: for a worker" in reason) == (
        EventKind.TROUBLE,
        True,
    )
    assert deployed.connection.settings.visibility_timeout == 60
