"""The messages in flight, as a worker ends."""

import pytest

from dueline.memory import VirtualClock
from dueline.ports import Refusal
from dueline.worker.claim import Claim
from dueline.worker.in_flight import InFlight
from tests.builders import NOW, a_message
from tests.waiting import HANG_SECONDS
from tests.work import Events, SharedQueue, a_connection


@pytest.fixture
def level(monkeypatch):
    monkeypatch.setattr("dueline.worker.in_flight._FINAL_ACKS_SECONDS", HANG_SECONDS)
    monkeypatch.setattr("dueline.worker.acknowledger._RETRY_SECONDS", 0.01)
    return SharedQueue(clock=VirtualClock(NOW))


def test_a_message_that_was_put_back_is_lost_at_once_and_not_when_all_is_acknowledged(level):
    level.send([a_message(body="done"), a_message(body="runs")])
    arrivals = level.receive(most=2, wait=0)
    done, runs = [Claim(arrival=arrival, level=0, received=0, visible=30) for arrival in arrivals]
    in_flight = InFlight(a_connection(level, clock=VirtualClock(NOW)), report=Events())
    in_flight.start()
    in_flight.add([done, runs])
    delete = level.delete
    busy = [Refusal(index=0, reason="ServiceUnavailable", final=False)]
    level.delete = lambda receipts: delete(receipts) if runs.lost else busy
    in_flight.delete(done)
    in_flight.stop(put_back=True)
    assert (len(level.messages), runs.lost, done.lost) == (1, True, False)
