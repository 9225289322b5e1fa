"""Cancels, promised or requested, and what workers see of them."""

import pytest

from dueline.core import rows
from dueline.core.cancel import CancelResult
from dueline.core.job import Partition, Route, State
from dueline.core.request import Request
from dueline.core.status import status_under
from dueline.errors import JobNotFound, Throttled, Unavailable
from tests.builders import a_queue, an_id, emails, id_due_in
from tests.system import System
from tests.wire import done_in_part, failing, meanwhile, on

NEVER = emails(77)


def test_cancel_is_promised_behind_the_fence(system):
    system.tick()
    assert system.cancel(id_due_in(240)) is State.CANCEL_REQUESTED
    assert system.cancel(id_due_in(240.001)) is State.CANCELLED


# Ids that are no job's


@pytest.mark.parametrize("route", Route)
def test_cancel_in_unknown_partition_is_refused(route):
    system = System(a_queue(partitions=2))
    stray, cached = id_due_in(3600, partition=NEVER, route=route), id_due_in(3600)
    with pytest.raises(JobNotFound, match=r"'emails' never had a partition 77: it has 0 to 1$"):
        system.cancel(stray)
    refused, cancelled = system.cancel_many([stray, cached])
    assert isinstance(refused, JobNotFound)
    assert cancelled == CancelResult(id=cached, state=State.CANCELLED)
    assert system.cancelled_among([stray, cached]) == {cached}


def test_cancel_in_a_removed_partition_holds():
    system, id = System(), id_due_in(3600, partition=NEVER)
    system.tick(NEVER)
    assert system.cancel(id) is State.CANCELLED
    assert system.cancel_many([id]) == [CancelResult(id=id, state=State.CANCELLED)]


def test_cancel_in_unread_partition_fails():
    system, cached, strays = System(), id_due_in(3600), [id_due_in(3600 + n, partition=NEVER) for n in range(2)]
    for react in (done_in_part, failing(Throttled("slow down"))):
        system.wire.around = on("table.read", react, times=2)
        with pytest.raises((Throttled, Unavailable)):
            system.cancel(strays[0])
        *unclear, cancelled = system.cancel_many([*strays, cached])
        assert {type(each) for each in unclear} <= {Throttled, Unavailable}
        assert [each.job_id for each in unclear] == [str(each) for each in strays]
        assert cancelled == CancelResult(id=cached, state=State.CANCELLED)
    assert system.cancelled_among(strays) == set()


# Many at once


def test_unread_fence_promises_no_cancel():
    system = System(a_queue(partitions=2))
    unread, read = (id_due_in(3600, partition=emails(number)) for number in (0, 1))
    direct = id_due_in(60, route=Route.DIRECT)
    system.wire.around = on("table.read", done_in_part)
    error, promised, requested = system.cancel_many([unread, read, direct])
    assert (type(error), error.job_id) == (Unavailable, str(unread))
    assert (promised.state, requested.state) == (State.CANCELLED, State.CANCEL_REQUESTED)


@pytest.mark.parametrize(("name", "started"), [("table.add", 1), ("table.read", 3), ("table.mark_exact", 3)])
def test_many_cancels_stop_when_time_is_over(name, started):
    system, ids = System(), [id_due_in(3000 + n) for n in range(3)]
    system.wire.around = on(name, meanwhile(lambda: system.clock.sleep(1)))
    results = system.cancel_many(ids, until=1)
    late = [each for each in results if isinstance(each, Unavailable)]
    assert all("out of time" in str(error) for error in late)
    assert [error.job_id for error in late] == [str(id) for id in ids[len(ids) - len(late) :]]
    assert len(late) == (2 if name == "table.mark_exact" else 3)
    assert len(system.cancelled_among(ids)) == started


# Jobs that were moved


def test_forgotten_id_cancels_nothing(system):
    """Its own move has expired while the job, which was moved on by its next id, still waits."""
    first = system.schedule(3600).id
    second = system.reschedule(first, delay=7200)
    third = system.reschedule(second, delay=200 * 24 * 3600)
    system.clock.sleep(100 * 24 * 3600)
    system.table.collect(system.table.expired(now=system.clock.now()))
    assert [type(each) for each in system.cancel_many([first])] == [JobNotFound]
    assert system.cancel_many([second, third]) == [
        CancelResult(id=third, state=State.CANCELLED, moved_from=second),
        CancelResult(id=third, state=State.CANCELLED),
    ]


def test_cancel_follows_32_moves_and_no_more(system):
    ids = [system.schedule(3600).id]
    for hop in range(33):
        ids.append(system.reschedule(ids[-1], delay=3601 + hop))
    assert system.cancel_many([ids[1]]) == [CancelResult(id=ids[33], state=State.CANCELLED, moved_from=ids[1])]
    (error,) = system.cancel_many([ids[0]])
    assert (type(error), "was moved over 32 times" in str(error)) == (Unavailable, True)


# By key


def test_cancel_by_a_key_that_lags_follows_moves(system):
    """A move by an id goes on without the key's row where that refuses; no id was given."""
    id = system.submit(Request(payload=1, delay=3600, key="k"))[0].id
    row_key = rows.name_key("emails", "k")
    row = system.table.read([row_key]).rows[row_key]
    moved = system.reschedule(id, delay=7200)
    system.table.write([row])
    settings, now = a_queue(), system.clock.now()
    assert status_under("k", queue=settings, table=system.table, now=now)[1].moved_from is None
    assert system.cancel_by_keys(["k"]) == [CancelResult(id=moved, state=State.CANCELLED)]


@pytest.mark.parametrize("forged", ["nonsense", str(an_id(partition=Partition(queue="bills", number=0)))])
def test_key_of_a_forged_row_cancels_nothing(forged):
    system = System(a_queue(), a_queue(name="bills"))
    pk, sk = rows.name_key("emails", "k")
    system.table.write([{"pk": pk, "sk": sk, "id": forged, "done": True, "ttl": 2**40}])
    (error,) = system.cancel_by_keys(["k"])
    assert isinstance(error, JobNotFound)
    assert {rows.key(row) for row in system.stores.table.all()} == {(pk, sk)}


def test_unread_key_cancels_nothing(system):
    id = system.submit(Request(payload=1, delay=3600, key="k"))[0].id
    system.wire.around = on("table.read", done_in_part, times=1)
    (error,) = system.cancel_by_keys(["k"])
    assert (type(error), system.cancelled_among([id])) == (Unavailable, set())


# What workers see


def test_unread_cancellations_are_an_error(system):
    ids = [system.schedule(30).id for _ in range(101)]
    system.cancel(ids[100])
    assert system.cancelled_among(ids) == {ids[100]}
    for react, error in ((failing(Throttled("slow down")), Throttled), (done_in_part, Unavailable)):
        system.wire.around = on("table.read", react, skip=1, times=1)
        with pytest.raises(error):
            system.cancelled_among(ids)
