"""The claims of a queue worker, a request at a time: renewals, acknowledgements, permits."""

import threading
from functools import partial

import pytest

from dueline.core.clock import SystemClock
from dueline.core.ports import BatchFailure
from dueline.core.queue_settings import LONGEST_HIDDEN_SECONDS
from dueline.errors import Throttled
from dueline.testing import VirtualClock
from dueline.worker.claims import Claims
from dueline.worker.delivery import DeadLettered, EventKind, ReceivedMessage
from tests.builders import NOW, a_message
from tests.waiting import wait_until
from tests.wire import failing
from tests.work import Events, SharedQueue, a_claim, a_connection


class Holding:
    """Claims on so many messages of each of two levels, in virtual time unless there is a clock."""

    def __init__(self, number=1, *, clock=None, **settings):
        self.clock = clock or VirtualClock(NOW)
        self.levels = SharedQueue(clock=self.clock), SharedQueue(clock=self.clock)
        self.events = Events()
        self.context = a_connection(*self.levels, clock=self.clock, report=self.events, **settings)
        self.claims = Claims(self.context, concurrency=40)
        self.each = []
        for number_of_level, level in enumerate(self.levels):
            level.send([a_message(body=str(each)) for each in range(number)])
            received = self.clock.monotonic()
            self.each += [
                ReceivedMessage(
                    queue="emails", arrival=arrival, level=number_of_level, received=received, visible=received + 30
                )
                for arrival in level.receive(most=10, wait=0, hidden=30)
            ]
            level.requests.clear()
        self.first = self.each[0]
        self.claims.add(self.each)

    def send(self, after=0.0):
        """Let so many seconds pass, and send all requests that are due then."""
        self.clock.sleep(after)
        while self.claims.send_next():
            pass

    def requests(self, level=0):
        return self.levels[level].requests

    def left(self):
        return [len(level.messages) for level in self.levels]

    def kinds(self):
        return [event.kind for event in self.events]


@pytest.fixture
def holding():
    return Holding()


@pytest.fixture
def ten():
    return Holding(10)


fail = failing(Throttled("slow down"))


def refuse(*_, index=0, final=False):
    return [BatchFailure(index=index, reason="slow down", final=final)]


# Renewals


def test_claim_is_renewed_at_half_of_its_time(holding):
    holding.send(after=14)
    assert holding.first.visible == 30.0
    holding.send(after=1)
    assert holding.first.visible == 45.0
    holding.clock.sleep(29)
    assert holding.levels[0].receive(most=1, wait=0) == []
    assert holding.first.is_live(holding.clock.monotonic())


def test_ten_claims_are_renewed_together(ten):
    ten.send(after=20)
    assert (ten.requests(0), ten.requests(1)) == ([("hide", 10)], [("hide", 10)])
    assert {claim.visible for claim in ten.each} == {50.0}


def test_no_claim_outlasts_the_longest_run():
    holding = Holding(longest_run=60)
    holding.first.started = 0.0
    for _ in range(12):
        holding.send(after=5)
    assert (holding.first.visible, holding.first.lost) == (60.0, True)
    assert holding.kinds() == [EventKind.LOST]


@pytest.mark.parametrize(
    ("started", "ended", "longest_run", "until"),
    [
        (None, False, 3600, 39_000),
        (None, False, 40_000, 2600),
        (50.0, False, 3600, 3650),
        (39_000.0, False, 3600, 42_600),
        (10.0, False, 43_199, 42_600),
        (None, True, 40_000, LONGEST_HIDDEN_SECONDS),
    ],
)
def test_no_claim_outlasts_12_hours(started, ended, longest_run, until):
    claim = a_claim(received=0.0, started=started)
    claim.dead = DeadLettered() if ended else None
    assert claim.renewable_until(longest_run) == until


def test_claim_is_lost_after_its_time(holding):
    holding.levels[0].hide = holding.levels[1].hide = fail
    holding.send(after=20)
    assert holding.kinds() == [EventKind.TROUBLE] * 2
    assert holding.first.is_live(holding.clock.monotonic())
    holding.send(after=10)
    assert holding.first.lost
    holding.send(after=10)
    assert holding.kinds().count(EventKind.LOST) == 2


@pytest.mark.parametrize(("started", "permits"), [(None, 39), (1.0, 38)])
def test_refused_renewal_loses_the_claim_once(holding, started, permits):
    """A job that waits keeps no permit: it may wait for an hour, never begins, and others may be received meanwhile."""
    holding.first.started = started
    holding.levels[0].queue.hide([holding.first.arrival.receipt], [0])
    for _ in range(2):
        holding.send(after=20)
    assert (holding.first.lost, holding.kinds()) == (True, [EventKind.LOST])
    assert holding.claims.wait_for_permits(within=0) == permits


def test_lapsed_claim_is_not_revived(holding):
    hide = holding.levels[0].hide
    holding.levels[0].hide = lambda receipts, seconds: (hide(receipts, seconds), holding.clock.sleep(11))[0]
    holding.send(after=20)
    holding.send(after=1)
    assert (holding.first.visible, holding.first.lost) == (30.0, True)


def test_acknowledgement_waits_for_a_renewal(holding):
    """A renewal that reached SQS after the acknowledgement would undo it."""
    hide = holding.levels[0].hide

    def settle_meanwhile(receipts, seconds):
        holding.claims.hide(holding.first, 3600)
        holding.clock.sleep(1)
        holding.levels[0].hide = hide
        assert holding.claims.send_next(), "the other level's renewal"
        assert not holding.claims.send_next()
        return hide(receipts, seconds)

    holding.levels[0].hide = settle_meanwhile
    holding.send(after=20)
    (delivery,) = holding.levels[0].queue.deliveries
    assert (delivery.visible - holding.clock.now()).total_seconds() == 3600


def test_renewal_survives_any_error(monkeypatch):
    holding = Holding(clock=SystemClock())
    threads, due = set(threading.enumerate()), holding.claims._due_renewals
    faults = [RuntimeError("can't start new thread")] * 5

    def fail_first():
        if faults:
            raise faults.pop()
        return due()

    monkeypatch.setattr(holding.claims, "_due_renewals", fail_first)
    holding.first.visible -= 16
    before = holding.first.visible
    holding.claims.start()
    assert wait_until(lambda: holding.first.visible > before)
    assert [event.reason for event in holding.events] == ["RuntimeError: can't start new thread"] * 5
    holding.claims.close(within=0)
    assert wait_until(lambda: set(threading.enumerate()) <= threads)


# Acknowledgements


def test_messages_have_own_acknowledgements(ten):
    hidden, *deleted = ten.each
    ten.claims.hide(hidden, 60)
    for claim in deleted:
        ten.claims.delete(claim)
    ten.send(after=0.1)
    assert ten.left() == [1, 0]
    assert sorted(ten.requests(0)) == [("delete", 9), ("hide", 1)]
    assert ten.requests(1) == [("delete", 10)]
    (delivery,) = ten.levels[0].queue.deliveries
    assert (delivery.visible - ten.clock.now()).total_seconds() == pytest.approx(60)
    assert ten.claims.is_idle


def test_full_batch_is_sent_at_once(ten):
    for claim in ten.each[:11]:
        ten.claims.delete(claim)
    ten.send()
    assert (ten.requests(0), ten.requests(1)) == ([("delete", 10)], [])
    ten.send(after=0.1)
    assert ten.requests(1) == [("delete", 1)]


def test_first_settlement_counts(holding):
    holding.claims.hide(holding.first, 0)
    holding.claims.delete(holding.first)
    holding.send(after=0.1)
    assert holding.requests() == [("hide", 1)]


@pytest.mark.parametrize("lose", ["the process stood still", "SQS says so"])
def test_lost_claim_is_not_acknowledged(holding, lose):
    """Another worker has the message by now."""
    if lose == "SQS says so":
        holding.levels[0].queue.hide([holding.first.arrival.receipt], [0])
    else:
        holding.claims._next_check = 1000
        holding.clock.sleep(31)
    holding.claims.delete(holding.first)
    holding.send(after=0.1)
    assert holding.kinds() == [EventKind.LOST]
    assert (holding.first.lost, holding.left()) == (True, [1, 1])


@pytest.mark.parametrize(("answer", "again"), [(partial(refuse, index=1), 1), (fail, 3)])
def test_failed_acknowledgement_is_sent_again(ten, answer, again):
    delete, ten.levels[0].delete = ten.levels[0].delete, answer
    for claim in ten.each[:3]:
        ten.claims.delete(claim)
    ten.send(after=0.1)
    (event,) = ten.events
    assert event.reason == "a message was not acknowledged, and will be: slow down"
    ten.levels[0].delete = delete
    ten.send(after=0.9)
    assert ten.requests() == []
    ten.send(after=0.2)
    assert ten.requests() == [("delete", again)]


def test_unacknowledged_claim_is_renewed(holding):
    holding.levels[0].delete = refuse
    holding.claims.delete(holding.first)
    for _ in range(4):
        holding.send(after=10)
    assert holding.first.is_live(holding.clock.monotonic())
    assert not holding.claims.is_idle


def test_message_that_goes_back_is_lost_at_once():
    """Not only when all is acknowledged: its handler still runs."""
    holding = Holding(2)
    done, runs = holding.each[:2]
    holding.levels[0].delete = refuse
    holding.claims.delete(done)
    assert holding.claims.stop() is False
    holding.send(after=0.1)
    holding.send(after=1)
    assert (runs.lost, done.lost, holding.events.of(EventKind.LOST)) == (True, False, [])
    holding.claims.delete(runs)
    holding.send(after=2)
    assert ("delete", 1) not in holding.requests()


def test_unsent_acknowledgements_are_lost(holding):
    holding.levels[0].delete = refuse
    holding.claims.delete(holding.first)
    holding.send(after=0.1)
    holding.claims.close(within=0)
    assert holding.kinds() == [EventKind.TROUBLE, EventKind.LOST]
    assert holding.first.lost


# Permits


def test_settled_message_frees_its_permit(ten):
    permits = lambda: ten.claims.wait_for_permits(within=0)  # noqa: E731
    assert permits() == 20
    ten.claims.hide(ten.each[0], 5)
    ten.claims.delete(ten.each[1])
    assert permits() == 22
    ten.clock.sleep(30)
    assert not ten.claims.has(ten.each[2])
    assert permits() == 23
    ten.claims.add(ten.each[2:3] * 2 + [a_claim() for _ in range(22)])
    assert permits() == 0


def test_idle_threads_do_not_wake_each_other(holding, monkeypatch):
    """Each look at nothing that woke the other thread would make it look, and so on without end."""
    notified = []
    monkeypatch.setattr(holding.claims._changed, "notify_all", lambda: notified.append(1))
    assert not holding.claims.send_next()
    assert not notified
