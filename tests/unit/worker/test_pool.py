"""The threads of a queue worker."""

import time

from dueline.core.clock import SystemClock
from dueline.worker.queue_worker import Pool
from tests.waiting import wait_until

FAR = 1000.0


def test_items_run_when_due():
    ran, started = [], time.monotonic()
    run = lambda item: ran.append((item, time.monotonic()))  # noqa: E731
    pool = Pool(3, run, name="emails", clock=SystemClock())
    pool.start()
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
