import threading

import pytest

from dueline.errors import Throttled
from dueline.memory import VirtualClock
from dueline.ports import Refusal
from dueline.worker.acknowledger import Ack, Acknowledger
from dueline.worker.claim import Claim
from dueline.worker.watch.event import Kind
from tests.builders import NOW, a_message
from tests.waiting import HANG_SECONDS
from tests.work import Events, SharedQueue, a_connection, wait_until


@pytest.fixture
def clock():
    return VirtualClock(NOW)


@pytest.fixture
def desk(clock, monkeypatch):
    monkeypatch.setattr("dueline.worker.acknowledger._AGAIN_SECONDS", 0.1)
    return Desk(clock)


class Desk:
    """VisibilityRenewer on ten messages of each of two levels, and what becomes of them."""

    def __init__(self, clock):
        self.levels = SharedQueue(clock=clock), SharedQueue(clock=clock)
        self.connection = a_connection(*self.levels, clock=clock)
        self.events, self.ended = Events(), []
        self.acks = Acknowledger(self.connection, on_end=self.ended.append, report=self.events)
        self.claims = []
        for number, level in enumerate(self.levels):
            level.send([a_message(body=str(each)) for each in range(10)])
            arrivals = level.receive(most=10, wait=0)
            self.claims += [Claim(arrival=each, level=number, received=0, visible=30) for each in arrivals]

    def left(self):
        return [len(level.messages) for level in self.levels]


def test_ten_messages_are_deleted_in_one_request(desk):
    assert desk.acks.tell([Ack(claim=claim) for claim in desk.claims[:10]]) == []
    assert desk.left() == [0, 10]
    assert desk.levels[0].asked[-1] == ("delete", 10)
    assert desk.ended == desk.claims[:10]


def test_each_level_is_told_of_its_own_and_each_message_of_its_own_fate(desk, clock):
    kept, gone = desk.claims[0], desk.claims[10]
    assert desk.acks.tell([Ack(claim=kept, hidden=60), Ack(claim=gone)]) == []
    assert desk.left() == [10, 9]
    clock.sleep(59)
    assert len(desk.levels[0].receive(most=10, wait=0)) == 9
    clock.sleep(1)
    assert len(desk.levels[0].receive(most=10, wait=0)) == 1


def test_of_one_level_what_is_kept_is_not_deleted_with_the_rest(desk):
    kept, *gone = desk.claims[:10]
    assert desk.acks.tell([*(Ack(claim=claim) for claim in gone), Ack(claim=kept, hidden=0)]) == []
    assert [message.body for message in desk.levels[0].messages] == [kept.arrival.message.body]
    assert desk.levels[0].queue.depth().waiting == 1


def test_a_worker_that_lost_its_claim_does_not_acknowledge_anothers(desk, clock):
    """It stood still beyond its claim: another has the message by now."""
    claim = desk.claims[0]
    clock.sleep(31)
    asked = len(desk.levels[0].asked)
    assert desk.acks.tell([Ack(claim=claim)]) == []
    assert len(desk.levels[0].asked) == asked
    assert [event.kind for event in desk.events] == [Kind.LOST]
    assert desk.ended == [claim]
    assert claim.lost


def test_a_claim_that_sqs_says_is_lost_is_told_of_and_over(desk):
    claim = desk.claims[0]
    desk.levels[0].queue.hide([claim.arrival.receipt], [0])
    assert desk.acks.tell([Ack(claim=claim)]) == []
    assert claim.lost
    assert [event.kind for event in desk.events] == [Kind.LOST]
    assert desk.left() == [10, 10]


def test_what_sqs_did_not_do_this_time_is_told_again_and_the_rest_is_over(desk):
    desk.levels[0].delete = lambda receipts: [Refusal(index=1, reason="InternalError", final=False)]
    acks = [Ack(claim=claim) for claim in desk.claims[:3]]
    assert desk.acks.tell(acks) == [acks[1]]
    assert desk.ended == [desk.claims[0], desk.claims[2]]


def test_after_a_fault_all_are_told_again(desk):
    def fail(receipts):
        raise Throttled("slow down")

    desk.levels[0].delete = fail
    acks = [Ack(claim=claim) for claim in desk.claims[:3]]
    assert desk.acks.tell(acks) == acks
    assert [event.kind for event in desk.events] == [Kind.TROUBLE]
    assert desk.ended == []


def test_what_comes_within_a_moment_goes_together_and_all_is_told_before_the_end(desk):
    desk.acks.start()
    for claim in desk.claims:
        desk.acks.put(Ack(claim=claim))
    desk.acks.stop(within=5)
    assert wait_until(lambda: desk.left() == [0, 0])
    assert [asked for level in desk.levels for asked in level.asked[1:]] == [("delete", 10), ("delete", 10)]


def refusing(desk, refuses):
    """Let SQS refuse to delete for now while `refuses()`."""
    delete = desk.levels[0].delete

    def ask(receipts):
        if refuses():
            desk.levels[0].asked.append(("refused", len(receipts)))
            return [Refusal(index=0, reason="Throttled: slow down", final=False)]
        return delete(receipts)

    desk.levels[0].delete = ask


def test_what_sqs_refuses_for_now_is_told_as_trouble(desk):
    refusing(desk, lambda: True)
    ack = Ack(claim=desk.claims[0])
    assert desk.acks.tell([ack]) == [ack]
    (event,) = desk.events
    assert event.kind is Kind.TROUBLE
    assert event.reason == "a message was not acknowledged, and will be: Throttled: slow down"


def test_it_is_busy_until_sqs_was_told_of_all(desk):
    refused = [True]
    refusing(desk, lambda: bool(refused))
    assert desk.acks.is_idle
    desk.acks.put(Ack(claim=desk.claims[0]))
    assert not desk.acks.is_idle
    desk.acks.start()
    assert wait_until(lambda: bool(desk.events))
    assert not desk.acks.is_idle
    assert desk.acks.has(desk.claims[0])
    refused.clear()
    assert wait_until(lambda: desk.acks.is_idle)
    assert desk.left() == [9, 10]
    desk.acks.stop(within=HANG_SECONDS)


def test_what_is_unsent_at_the_end_is_told_as_lost_and_nothing_is_asked_any_more(desk, monkeypatch):
    monkeypatch.setattr("dueline.worker.acknowledger._AGAIN_SECONDS", HANG_SECONDS)
    before = set(threading.enumerate())
    refusing(desk, lambda: True)
    desk.acks.start()
    desk.acks.put(Ack(claim=desk.claims[0]))
    assert wait_until(lambda: bool(desk.events))
    desk.acks.stop(within=0)
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert [event.kind for event in desk.events] == [Kind.TROUBLE, Kind.LOST]
    assert (desk.claims[0].lost, desk.ended) == (True, [desk.claims[0]])
    assert [what for what, _ in desk.levels[0].asked].count("refused") == 1


def test_told_to_stop_it_still_waits_before_it_asks_again(desk, monkeypatch):
    monkeypatch.setattr("dueline.worker.acknowledger._AGAIN_SECONDS", HANG_SECONDS)
    refusing(desk, lambda: True)
    desk.acks.start()
    desk.acks.put(Ack(claim=desk.claims[0]))
    assert wait_until(lambda: bool(desk.events))
    desk.acks.stop(within=0.5)
    assert [what for what, _ in desk.levels[0].asked].count("refused") == 1


def test_claims_are_heard_of_before_they_are_told_of_and_kept_while_they_are_to_be_told_again(desk):
    heard = []
    acks = Acknowledger(
        desk.connection,
        on_send=lambda claims: heard.append((claims, desk.left())),
        on_end=lambda _: None,
        report=Events(),
    )
    desk.levels[0].delete = lambda receipts: [Refusal(index=1, reason="InternalError", final=False)]
    claims = desk.claims[:2]
    for claim in claims:
        claim.settled = True
    acks.tell([Ack(claim=claim) for claim in claims])
    assert heard == [(claims, [10, 10])]
    assert [claim.settled for claim in claims] == [True, False]
