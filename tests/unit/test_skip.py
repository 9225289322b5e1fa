import pytest

from dueline.errors import Unavailable
from dueline.job import State
from tests.system import System
from tests.wire import done_in_part, on


@pytest.fixture
def system():
    return System()


def test_a_worker_is_told_of_cancels_that_were_promised_and_of_those_that_were_only_requested(system):
    promised, requested, kept = system.schedule(700), system.schedule(30), system.schedule(30)
    assert system.cancel(promised.id) is State.CANCELLED
    assert system.cancel(requested.id) is State.CANCEL_REQUESTED
    ids = [promised.id, requested.id, kept.id]
    assert system.cancelled_among(ids) == {promised.id, requested.id}


def test_a_worker_that_received_nothing_is_told_of_nothing(system):
    assert system.cancelled_among([]) == set()


def test_a_cancellation_that_could_not_be_read_is_never_taken_for_none(system):
    jobs = [system.schedule(30), system.schedule(30)]
    system.wire.around = on("table.read", done_in_part)
    with pytest.raises(Unavailable, match="1 cancellations could not be read"):
        system.cancelled_among([job.id for job in jobs])
