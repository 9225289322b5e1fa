import threading
import time

import pytest

from dueline.worker.pool import Pool
from tests.waiting import HANG_SECONDS
from tests.work import wait_until

FAR = 1000.0


@pytest.fixture
def ran():
    return []


def a_pool(run, *, size=2):
    pool = Pool(size, name="emails", now=time.monotonic)
    pool.start(run)
    return pool


def put(pool, item, *, at=0.0):
    pool.reserve(1)
    pool.put(item, at=at)


def test_what_is_put_runs_and_releases_its_thread(ran):
    pool = a_pool(ran.append)
    for number in range(2):
        put(pool, number)
    assert wait_until(lambda: pool.is_idle)
    assert sorted(ran) == [0, 1]
    assert pool.wait_for_threads(wanted=2, patience=0, within=0) == 2


def test_there_is_no_room_while_all_threads_are_reserved():
    held = threading.Event()
    pool = a_pool(lambda _: held.wait())
    put(pool, 0)
    assert pool.wait_for_threads(wanted=2, patience=0.01, within=0.01) == 1
    put(pool, 1)
    assert pool.wait_for_threads(wanted=1, patience=0, within=0.05) == 0
    held.set()
    assert pool.wait_for_threads(wanted=2, patience=HANG_SECONDS, within=HANG_SECONDS) == 2


def test_what_waits_for_its_time_reserves_a_thread_and_keeps_nothing_else_back(ran):
    pool, begun = a_pool(lambda item: ran.append((item, time.monotonic())), size=3), time.monotonic()
    put(pool, "later", at=begun + FAR)
    put(pool, "soon", at=begun + 0.1)
    assert pool.wait_for_threads(wanted=3, patience=0, within=0) == 1
    put(pool, "now", at=begun)
    assert wait_until(lambda: len(ran) == 2)
    ran_at = dict(ran)
    assert set(ran_at) == {"now", "soon"}
    assert ran_at["soon"] >= begun + 0.1
    assert pool.drain() == ["later"]


def test_what_has_not_begun_is_drained_and_never_runs(ran):
    held = threading.Event()
    pool = a_pool(lambda item: (ran.append(item), held.wait()), size=3)
    for number in range(3):
        put(pool, number)
    assert wait_until(lambda: len(ran) == 3)
    held.set()
    assert wait_until(lambda: pool.is_idle)
    put(pool, "late", at=time.monotonic() + FAR)
    assert pool.drain() == ["late"]
    assert not pool.is_idle
    pool.release(1)
    assert pool.is_idle
    put(pool, "next")
    assert wait_until(lambda: "next" in ran)
    assert "late" not in ran


def test_a_thread_is_released_though_the_item_failed(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def fail(_):
        raise RuntimeError

    pool = a_pool(fail)
    put(pool, 0)
    assert wait_until(lambda: pool.is_idle)


def test_told_to_stop_its_threads_end_each_when_what_it_runs_has_run(ran):
    before, held = set(threading.enumerate()), threading.Event()
    begun = threading.Event()
    pool = a_pool(lambda item: (begun.set(), held.wait(60), ran.append(item)), size=3)
    put(pool, 0)
    assert begun.wait(60)
    put(pool, "late", at=time.monotonic() + 3600)
    assert pool.drain() == ["late"]
    pool.stop()
    assert pool.drain() == []
    assert wait_until(lambda: len(set(threading.enumerate()) - before) == 1)
    held.set()
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert ran == [0]
