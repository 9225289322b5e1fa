import pytest

from dueline.core.cancel import cancellations_of
from dueline.core.job import State
from dueline.errors import Throttled, Unavailable
from tests.system import System
from tests.wire import done_in_part, failing, on


@pytest.fixture
def system():
    return System()


def test_worker_sees_promised_and_requested_cancels(system):
    promised, requested, kept = system.schedule(700), system.schedule(30), system.schedule(30)
    assert system.cancel(promised.id) is State.CANCELLED
    assert system.cancel(requested.id) is State.CANCEL_REQUESTED
    ids = [promised.id, requested.id, kept.id]
    assert system.cancelled_among(ids) == {promised.id, requested.id}


def test_unread_cancellation_is_no_absent_one(system):
    jobs = [system.schedule(30), system.schedule(30)]
    system.wire.around = on("table.read", done_in_part)
    with pytest.raises(Unavailable, match="1 cancellations could not be read"):
        system.cancelled_among([job.id for job in jobs])


def test_worker_may_query_more_jobs_than_a_request_takes(system):
    jobs = [system.schedule(30) for _ in range(201)]
    for job in jobs[::100]:
        system.cancel(job.id)
    assert system.cancelled_among([job.id for job in jobs]) == {job.id for job in jobs[::100]}


def test_what_cannot_be_read_of_many_cancellations_fails_alone(system):
    jobs = [system.schedule(30) for _ in range(201)]
    ids = [job.id for job in jobs]
    for id in ids:
        system.cancel(id)
    system.wire.around = on("table.read", failing(Throttled("slow down")), skip=1, times=1)
    cached = cancellations_of(ids, table=system.table)
    assert (cached.cancelled, set(cached.unread)) == ({*ids[:100], ids[200]}, set(ids[100:200]))
    assert {str(fault) for fault in cached.unread.values()} == {"slow down"}
