"""The threads of a queue worker."""

import threading
import time

import pytest

from dueline.core.clock import SystemClock
from dueline.worker.queue_worker import Pool
from tests.waiting import HANG_SECONDS, wait_until

FAR = 1000.0


@pytest.fixture
def ran():
    return []


def a_pool(run, *, size=2):
    pool = Pool(size, run, name="emails", clock=SystemClock())
    pool.start()
    return pool


def test_items_run_when_due(ran):
    started = time.monotonic()
    pool = a_pool(lambda item: ran.append((item, time.monotonic())), size=3)
    for item, at in [("far", started + FAR), ("late", started + 0.3), ("soon", started + 0.1), ("now", started)]:
        pool.put(item, at=at)
    assert wait_until(lambda: len(ran) == 3)
    ran_at = dict(ran)
    assert list(ran_at) == ["now", "soon", "late"]
    assert ran_at["soon"] >= started + 0.1
    assert ran_at["late"] >= started + 0.3
    assert pool.drain() == [(started + FAR, "far")]
    assert pool.drain() == []
    pool.put("next", at=0)
    assert wait_until(lambda: ran[-1][0] == "next")


def test_stop_ends_threads_after_their_items(ran):
    before, held, started = set(threading.enumerate()), threading.Event(), threading.Event()
    pool = a_pool(lambda item: (started.set(), held.wait(HANG_SECONDS), ran.append(item)), size=3)
    pool.put(0, at=0)
    assert started.wait(HANG_SECONDS)
    pool.put("far", at=time.monotonic() + FAR)
    pool.stop()
    assert wait_until(lambda: len(set(threading.enumerate()) - before) == 1)
    held.set()
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert ran == [0]
