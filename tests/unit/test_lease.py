from datetime import timedelta

import pytest

from dueline.core import instant
from tests.builders import EMAILS, NOW
from tests.system import System
from tests.wire import meanwhile, on


def after(seconds):
    return instant.text(NOW + timedelta(seconds=seconds))


def received(system, **overrides):
    lease = system.a_lease(**overrides)
    assert lease.acquire()
    return lease


def test_lease_reports_when_the_last_send_must_begin():
    assert received(System()).stop_at == 30 - 10
    assert received(System(), seconds=7).stop_at == 7


def test_time_to_stop_counts_from_before_the_acquiring_call():
    system = System()
    system.wire.around = on("table.acquire_lease", meanwhile(lambda: system.clock.sleep(4)))
    assert received(system).stop_at == 30 - 10


def test_renewed_lease_is_left_alone_after_one_wait():
    system = System()
    holder, late = received(system), system.a_lease()
    system.wire.around = on("table.acquire_lease", meanwhile(lambda: holder.checkpoint("0")), skip=1)
    assert not late.acquire()
    assert system.clock.monotonic() == 30


def test_dead_holder_is_followed_as_soon_as_its_lease_is_over():
    system = System()
    received(system)
    system.clock.sleep(12.3)
    follower = received(system)
    assert system.clock.monotonic() == pytest.approx(30)
    assert follower.fence == after(240 + 30)


def test_nobody_waits_beyond_his_own_deadline():
    system = System()
    received(system)
    assert not system.a_lease(seconds=29).acquire()
    assert system.clock.monotonic() == 0


def test_partition_acquired_by_others_each_time_is_left():
    system = System()

    def another_passes():
        system.wire.around = lambda call: call.do(*call.args)
        system.clock.sleep(0.001)
        ahead = instant.text(system.clock.now() + timedelta(hours=1))
        system.table.acquire_lease(EMAILS, owner="other", now=after(0), lease=after(30), fence=ahead)
        system.table.checkpoint(EMAILS, owner="other", cursor="5", fence=ahead, lease="")
        system.wire.around = around

    around = on("table.acquire_lease", meanwhile(another_passes))
    system.wire.around = around
    assert not system.a_lease().acquire()
