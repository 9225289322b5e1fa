from datetime import timedelta

import pytest

from dueline.errors import Throttled, Unavailable
from dueline.model import instant
from tests.builders import EMAILS, NOW
from tests.system import System
from tests.wire import failing, losing_the_answer, meanwhile, on


def after(seconds):
    return instant.text(NOW + timedelta(seconds=seconds))


def taken(system, **overrides):
    lease = system.a_lease(**overrides)
    assert lease.take()
    return lease


def test_a_free_partition_is_taken_with_the_fence_at_the_lookahead():
    lease = taken(System())
    assert (lease.fence, lease.cursor) == (after(240), "0")


def test_a_lease_tells_when_the_last_send_must_begin():
    assert taken(System()).stop_at == 30 - 10
    assert taken(System(), seconds=7).stop_at == 7


def test_the_time_to_stop_counts_from_before_the_acquiring_call():
    system = System()
    system.wire.around = on("table.take", meanwhile(lambda: system.clock.sleep(4)))
    assert taken(system).stop_at == 30 - 10


def test_a_renewed_lease_is_left_alone_after_one_wait():
    system = System()
    holder, late = taken(system), system.a_lease()
    system.wire.around = on("table.take", meanwhile(lambda: holder.checkpoint("0")), skip=1)
    assert not late.take()
    assert system.clock.monotonic() == 30


def test_a_dead_holder_is_followed_as_soon_as_its_lease_is_over():
    system = System()
    taken(system)
    system.clock.sleep(12.3)
    follower = taken(system)
    assert system.clock.monotonic() == pytest.approx(30)
    assert follower.fence == after(240 + 30)


def test_nobody_waits_beyond_his_own_deadline():
    system = System()
    taken(system)
    assert not system.a_lease(seconds=29).take()
    assert system.clock.monotonic() == 0


def test_a_released_lease_is_free_at_once_and_its_cursor_stays():
    system = System()
    assert taken(system).release("2026-11-21T07:05:00.000Z#u#job")
    assert taken(system).cursor == "2026-11-21T07:05:00.000Z#u#job"
    assert system.clock.monotonic() == 0


def test_a_checkpoint_renews_the_lease_and_raises_the_fence():
    system = System()
    lease = taken(system)
    system.clock.sleep(15)
    assert lease.checkpoint("5")
    assert (lease.fence, lease.cursor, lease.stop_at) == (after(240 + 15), "5", 15 + 30 - 10)


def test_a_lease_that_another_took_is_lost_for_checkpoint_and_release():
    system = System()
    zombie = taken(system)
    system.clock.sleep(31)
    taken(system)
    assert not zombie.checkpoint("5")
    assert not zombie.release("5")


def test_a_higher_stored_fence_is_kept():
    system = System()
    ahead = instant.text(NOW + timedelta(hours=1))
    system.table.take(EMAILS, owner="a fast clock", now=after(0), lease=after(30), fence=ahead)
    system.table.checkpoint(EMAILS, owner="a fast clock", cursor="5", fence=ahead, lease="")
    lease = taken(system)
    assert (lease.fence, lease.cursor) == (ahead, "5")
    assert lease.release("6")


def test_a_higher_stored_fence_is_kept_behind_a_dead_holder():
    system = System()
    ahead = instant.text(NOW + timedelta(hours=1))
    system.table.take(EMAILS, owner="a fast clock", now=after(0), lease=after(30), fence=ahead)
    assert taken(system).fence == ahead


def test_a_partition_that_others_take_at_every_attempt_is_left_to_them():
    system = System()

    def another_passes():
        system.wire.around = lambda call: call.do(*call.args)
        system.clock.sleep(0.001)
        ahead = instant.text(system.clock.now() + timedelta(hours=1))
        system.table.take(EMAILS, owner="other", now=after(0), lease=after(30), fence=ahead)
        system.table.checkpoint(EMAILS, owner="other", cursor="5", fence=ahead, lease="")
        system.wire.around = around

    around = on("table.take", meanwhile(another_passes))
    system.wire.around = around
    assert not system.a_lease().take()


@pytest.mark.parametrize("error", [Throttled("slow down"), Unavailable("lost")])
def test_a_lease_that_could_not_be_asked_for_raises(error):
    system = System()
    system.wire.around = on("table.take", failing(error))
    with pytest.raises(type(error)):
        system.a_lease().take()


def test_a_lease_whose_answer_was_lost_runs_out_by_itself():
    system = System()
    system.wire.around = on("table.take", losing_the_answer, times=1)
    with pytest.raises(Unavailable):
        system.a_lease().take()
    assert taken(system)
    assert system.clock.monotonic() == 30
