"""Deleting dead letters, in memory."""

import pytest

from dueline.errors import QueueNotFound, Throttled, Unavailable
from dueline.operate.dead_letters import Wanted
from dueline.operate.delete_dead_letters import delete_dead_letters
from dueline.operate.redrive import HIDDEN_SECONDS
from dueline.ports import Refusal
from dueline.retry.calls import Calls, in_lanes
from dueline.retry.patience import Patience
from tests.unit.test_redrive import Killed, Place, counts, numbered
from tests.wire import NOT_NOW, failing, losing_the_answer, on


def delete(place, **given):
    calls = Calls(patience=Patience(attempts=3), clock=place.clock, jitter=lambda: 0.5)
    return delete_dead_letters(place.wire.to("dead", place.dead), calls=calls, **given)


def for_now(call):
    """Refuse the first of a batch, and delete the others."""
    (receipts,) = call.args
    call.do(receipts[1:])
    return [Refusal(index=0, reason=NOT_NOW, final=False)]


@pytest.mark.parametrize("spread", [map, in_lanes])
def test_all_are_deleted_and_none_is_put_back(spread):
    place = Place(*numbered(123))
    done = delete(place, spread=spread)
    assert (done.found, done.wanted, done.deleted, done.failed) == (123, 123, 123, {})
    assert (place.left(), place.moved()) == ([], [])


def test_those_of_an_error_are_deleted_and_the_others_are_visible():
    place = Place(*numbered(12), *numbered(25, error="TypeError"))
    done = delete(place, wanted=Wanted(errors=frozenset({"KeyError"})))
    assert (counts(done), done.found, done.deleted) == ({"KeyError": 12}, 37, 12)
    assert len(place.visible()) == len(place.left()) == 25


def test_what_sqs_does_not_delete_is_tried_again_and_then_told_and_visible():
    place = Place(*numbered(12))
    place.wire.around = on("dead.delete", for_now, times=1)
    assert (delete(place).deleted, place.left()) == (12, [])
    place = Place(*numbered(12))
    place.wire.around = on("dead.delete", for_now)
    done = delete(place)
    assert (done.wanted, done.deleted, done.failed) == (12, 11, {NOT_NOW: 1})
    place.clock.sleep(HIDDEN_SECONDS)
    assert len(place.visible()) == 1


@pytest.mark.parametrize("react", [failing(Throttled("slow")), failing(Unavailable("no")), losing_the_answer])
def test_a_call_that_fails_is_tried_again(react):
    place = Place(*numbered(12))
    place.wire.around = on("dead.delete", react, times=1)
    assert delete(place).found == 12
    assert place.left() == []


def test_a_run_that_dies_has_deleted_nothing_but_what_was_wanted():
    place = Place(*numbered(30), *numbered(30, error="TypeError"))
    place.wire.around = on("dead.delete", failing(Killed()), skip=1)
    with pytest.raises(Killed):
        delete(place, wanted=Wanted(errors=frozenset({"KeyError"})))
    assert len(place.left()) == 50


def test_a_queue_that_is_gone_is_told():
    place = Place()
    place.dead.gone = True
    with pytest.raises(QueueNotFound):
        delete(place)
