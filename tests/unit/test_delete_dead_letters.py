"""Deleting dead letters, in memory."""

import pytest

from dueline.core.ports import BatchFailure
from dueline.core.retry import Calls, Patience, in_lanes
from dueline.errors import QueueNotFound, Throttled, Unavailable
from dueline.operations.dead_letters import DeadLetterFilter
from dueline.operations.redrive import HIDDEN_SECONDS, Redrive, RedriveQueues
from tests.unit.test_redrive import Killed, Place, counts, numbered
from tests.wire import NOT_NOW, failing, losing_the_answer, on


def delete(place, **options):
    calls = Calls(patience=Patience(attempts=3), clock=place.clock, jitter=lambda: 0.5)
    ends = RedriveQueues(dead_letters=place.wire.to("dead", place.dead), queues=())
    return Redrive(ends, calls=calls, **options).delete()


def for_now(call):
    """Refuse the first of a batch, and delete the others."""
    (receipts,) = call.args
    call.do(receipts[1:])
    return [BatchFailure(index=0, reason=NOT_NOW, final=False)]


@pytest.mark.parametrize("spread", [map, in_lanes])
def test_all_are_deleted_and_none_is_put_back(spread):
    place = Place(*numbered(123))
    done = delete(place, spread=spread)
    assert (done.received, done.selected, done.moved, done.failed) == (123, 123, 123, {})
    assert (place.left(), place.moved()) == ([], [])


def test_only_letters_of_the_error_are_deleted():
    place = Place(*numbered(12), *numbered(25, error="TypeError"))
    done = delete(place, selection=DeadLetterFilter(errors=frozenset({"KeyError"})))
    assert (counts(done), done.received, done.moved) == ({"KeyError": 12}, 37, 12)
    assert len(place.visible()) == len(place.left()) == 25


def test_no_more_are_received_than_the_bound():
    place = Place(*numbered(60), *numbered(60, error="TypeError"))
    done = delete(place, selection=DeadLetterFilter(errors=frozenset({"KeyError"})), most=70)
    assert (done.received, done.moved) == (70, 60)
    assert len(place.visible()) == len(place.left()) == 60


def test_failed_delete_is_retried_then_reported():
    place = Place(*numbered(12))
    place.wire.around = on("dead.delete", for_now, times=1)
    assert (delete(place).moved, place.left()) == (12, [])
    place = Place(*numbered(12))
    place.wire.around = on("dead.delete", for_now)
    done = delete(place)
    assert (done.selected, done.moved, done.failed) == (12, 11, {NOT_NOW: 1})
    place.clock.sleep(HIDDEN_SECONDS)
    assert len(place.visible()) == 1


@pytest.mark.parametrize("react", [failing(Throttled("slow")), failing(Unavailable("no")), losing_the_answer])
def test_a_call_that_fails_is_tried_again(react):
    place = Place(*numbered(12))
    place.wire.around = on("dead.delete", react, times=1)
    assert delete(place).received == 12
    assert place.left() == []


def test_a_run_that_dies_has_deleted_nothing_but_what_was_wanted():
    place = Place(*numbered(30), *numbered(30, error="TypeError"))
    place.wire.around = on("dead.delete", failing(Killed()), skip=1)
    with pytest.raises(Killed):
        delete(place, selection=DeadLetterFilter(errors=frozenset({"KeyError"})))
    assert len(place.left()) == 50


def test_a_queue_that_is_gone_is_reported():
    place = Place()
    place.dead.gone = True
    with pytest.raises(QueueNotFound):
        delete(place)
