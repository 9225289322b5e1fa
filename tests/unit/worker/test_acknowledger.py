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
def acknowledging(clock, monkeypatch):
    monkeypatch.setattr("dueline.worker.acknowledger._RETRY_SECONDS", 0.1)
    return Acknowledging(clock)


class Acknowledging:
    """An acknowledger, and claims on ten messages of each of two levels."""

    def __init__(self, clock):
        self.levels = SharedQueue(clock=clock), SharedQueue(clock=clock)
        self.connection = a_connection(*self.levels, clock=clock)
        self.events, self.ended = Events(), []
        self.acknowledger = Acknowledger(self.connection, on_end=self.ended.append, report=self.events)
        self.claims = []
        for number, level in enumerate(self.levels):
            level.send([a_message(body=str(each)) for each in range(10)])
            arrivals = level.receive(most=10, wait=0)
            self.claims += [Claim(arrival=each, level=number, received=0, visible=30) for each in arrivals]

    def left(self):
        return [len(level.messages) for level in self.levels]


def test_ten_messages_are_deleted_in_one_request(acknowledging):
    assert acknowledging.acknowledger.send([Ack(claim=claim) for claim in acknowledging.claims[:10]]) == []
    assert acknowledging.left() == [0, 10]
    assert acknowledging.levels[0].asked[-1] == ("delete", 10)
    assert acknowledging.ended == acknowledging.claims[:10]


def test_each_level_is_told_of_its_own_and_each_message_of_its_own_fate(acknowledging, clock):
    kept, gone = acknowledging.claims[0], acknowledging.claims[10]
    assert acknowledging.acknowledger.send([Ack(claim=kept, hidden=60), Ack(claim=gone)]) == []
    assert acknowledging.left() == [10, 9]
    clock.sleep(59)
    assert len(acknowledging.levels[0].receive(most=10, wait=0)) == 9
    clock.sleep(1)
    assert len(acknowledging.levels[0].receive(most=10, wait=0)) == 1


def test_of_one_level_what_is_kept_is_not_deleted_with_the_rest(acknowledging):
    kept, *gone = acknowledging.claims[:10]
    assert acknowledging.acknowledger.send([*(Ack(claim=claim) for claim in gone), Ack(claim=kept, hidden=0)]) == []
    assert [message.body for message in acknowledging.levels[0].messages] == [kept.arrival.message.body]
    assert acknowledging.levels[0].queue.depth().waiting == 1


def test_a_worker_that_lost_its_claim_does_not_acknowledge_anothers(acknowledging, clock):
    """It stood still beyond its claim: another has the message by now."""
    claim = acknowledging.claims[0]
    clock.sleep(31)
    asked = len(acknowledging.levels[0].asked)
    assert acknowledging.acknowledger.send([Ack(claim=claim)]) == []
    assert len(acknowledging.levels[0].asked) == asked
    assert [event.kind for event in acknowledging.events] == [Kind.LOST]
    assert acknowledging.ended == [claim]
    assert claim.lost


def test_a_claim_that_sqs_says_is_lost_is_told_of_and_over(acknowledging):
    claim = acknowledging.claims[0]
    acknowledging.levels[0].queue.hide([claim.arrival.receipt], [0])
    assert acknowledging.acknowledger.send([Ack(claim=claim)]) == []
    assert claim.lost
    assert [event.kind for event in acknowledging.events] == [Kind.LOST]
    assert acknowledging.left() == [10, 10]


def test_what_sqs_did_not_do_this_time_is_told_again_and_the_rest_is_over(acknowledging):
    acknowledging.levels[0].delete = lambda receipts: [Refusal(index=1, reason="InternalError", final=False)]
    acks = [Ack(claim=claim) for claim in acknowledging.claims[:3]]
    assert acknowledging.acknowledger.send(acks) == [acks[1]]
    assert acknowledging.ended == [acknowledging.claims[0], acknowledging.claims[2]]


def test_after_a_fault_all_are_told_again(acknowledging):
    def fail(receipts):
        raise Throttled("slow down")

    acknowledging.levels[0].delete = fail
    acks = [Ack(claim=claim) for claim in acknowledging.claims[:3]]
    assert acknowledging.acknowledger.send(acks) == acks
    assert [event.kind for event in acknowledging.events] == [Kind.TROUBLE]
    assert acknowledging.ended == []


def test_what_comes_within_a_moment_goes_together_and_all_is_told_before_the_end(acknowledging):
    acknowledging.acknowledger.start()
    for claim in acknowledging.claims:
        acknowledging.acknowledger.put(Ack(claim=claim))
    acknowledging.acknowledger.stop(within=5)
    assert wait_until(lambda: acknowledging.left() == [0, 0])
    assert [asked for level in acknowledging.levels for asked in level.asked[1:]] == [("delete", 10), ("delete", 10)]


def refusing(acknowledging, refuses):
    """Let SQS refuse to delete for now while `refuses()`."""
    delete = acknowledging.levels[0].delete

    def ask(receipts):
        if refuses():
            acknowledging.levels[0].asked.append(("refused", len(receipts)))
            return [Refusal(index=0, reason="Throttled: slow down", final=False)]
        return delete(receipts)

    acknowledging.levels[0].delete = ask


def test_what_sqs_refuses_for_now_is_told_as_trouble(acknowledging):
    refusing(acknowledging, lambda: True)
    ack = Ack(claim=acknowledging.claims[0])
    assert acknowledging.acknowledger.send([ack]) == [ack]
    (event,) = acknowledging.events
    assert event.kind is Kind.TROUBLE
    assert event.reason == "a message was not acknowledged, and will be: Throttled: slow down"


def test_it_is_busy_until_sqs_was_told_of_all(acknowledging):
    refused = [True]
    refusing(acknowledging, lambda: bool(refused))
    assert acknowledging.acknowledger.is_idle
    acknowledging.acknowledger.put(Ack(claim=acknowledging.claims[0]))
    assert not acknowledging.acknowledger.is_idle
    acknowledging.acknowledger.start()
    assert wait_until(lambda: bool(acknowledging.events))
    assert not acknowledging.acknowledger.is_idle
    assert acknowledging.acknowledger.has(acknowledging.claims[0])
    refused.clear()
    assert wait_until(lambda: acknowledging.acknowledger.is_idle)
    assert acknowledging.left() == [9, 10]
    acknowledging.acknowledger.stop(within=HANG_SECONDS)


def test_what_is_unsent_at_the_end_is_told_as_lost_and_nothing_is_asked_any_more(acknowledging, monkeypatch):
    monkeypatch.setattr("dueline.worker.acknowledger._RETRY_SECONDS", HANG_SECONDS)
    before = set(threading.enumerate())
    refusing(acknowledging, lambda: True)
    acknowledging.acknowledger.start()
    acknowledging.acknowledger.put(Ack(claim=acknowledging.claims[0]))
    assert wait_until(lambda: bool(acknowledging.events))
    acknowledging.acknowledger.stop(within=0)
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert [event.kind for event in acknowledging.events] == [Kind.TROUBLE, Kind.LOST]
    assert (acknowledging.claims[0].lost, acknowledging.ended) == (True, [acknowledging.claims[0]])
    assert [what for what, _ in acknowledging.levels[0].asked].count("refused") == 1


def test_told_to_stop_it_still_waits_before_it_asks_again(acknowledging, monkeypatch):
    monkeypatch.setattr("dueline.worker.acknowledger._RETRY_SECONDS", HANG_SECONDS)
    refusing(acknowledging, lambda: True)
    acknowledging.acknowledger.start()
    acknowledging.acknowledger.put(Ack(claim=acknowledging.claims[0]))
    assert wait_until(lambda: bool(acknowledging.events))
    acknowledging.acknowledger.stop(within=0.5)
    assert [what for what, _ in acknowledging.levels[0].asked].count("refused") == 1


def test_claims_are_heard_of_before_they_are_told_of_and_kept_while_they_are_to_be_told_again(acknowledging):
    heard = []
    acknowledger = Acknowledger(
        acknowledging.connection,
        on_send=lambda claims: heard.append((claims, acknowledging.left())),
        on_end=lambda _: None,
        report=Events(),
    )
    acknowledging.levels[0].delete = lambda receipts: [Refusal(index=1, reason="InternalError", final=False)]
    claims = acknowledging.claims[:2]
    for claim in claims:
        claim.settled = True
    acknowledger.send([Ack(claim=claim) for claim in claims])
    assert heard == [(claims, [10, 10])]
    assert [claim.settled for claim in claims] == [True, False]
