import threading
import time

import pytest

from dueline.working.pool import Pool
from tests.work import wait_until


@pytest.fixture
def ran():
    return []


def a_pool(run, *, size=2):
    pool = Pool(size, run, name="emails", now=time.monotonic)
    pool.start()
    return pool


def put(pool, item, *, at=0.0):
    pool.take(1)
    pool.put(item, at=at)


def test_what_is_put_runs_and_gives_its_place_back(ran):
    pool = a_pool(ran.append)
    for number in range(2):
        put(pool, number)
    assert wait_until(lambda: pool.is_idle)
    assert sorted(ran) == [0, 1]
    assert pool.wait_for_room(wanted=2, patience=0, within=0) == 2


def test_there_is_no_room_while_all_places_are_taken():
    held = threading.Event()
    pool = a_pool(lambda _: held.wait())
    put(pool, 0)
    assert pool.wait_for_room(wanted=2, patience=0.01, within=0.01) == 1
    put(pool, 1)
    assert pool.wait_for_room(wanted=1, patience=0, within=0.05) == 0
    held.set()
    assert pool.wait_for_room(wanted=2, patience=5, within=5) == 2


def test_what_waits_for_its_time_takes_a_place_and_runs_then_in_order(ran):
    pool, begun = a_pool(lambda item: ran.append((item, time.monotonic())), size=3), time.monotonic()
    put(pool, "second", at=begun + 0.2)
    put(pool, "first", at=begun + 0.1)
    assert pool.wait_for_room(wanted=3, patience=0, within=0) == 1
    put(pool, "now", at=begun)
    assert wait_until(lambda: len(ran) == 3)
    assert [item for item, _ in ran] == ["now", "first", "second"]
    assert all(at >= begun + late for (_, at), late in zip(ran, (0, 0.1, 0.2), strict=True))


def test_what_has_not_begun_is_taken_back_and_never_runs(ran):
    held = threading.Event()
    pool = a_pool(lambda item: (ran.append(item), held.wait()), size=3)
    for number in range(3):
        put(pool, number)
    assert wait_until(lambda: len(ran) == 3)
    held.set()
    assert wait_until(lambda: pool.is_idle)
    put(pool, "late", at=time.monotonic() + 0.05)
    assert pool.take_back() == ["late"]
    assert not pool.is_idle
    pool.give_back(1)
    assert pool.is_idle
    time.sleep(0.1)
    assert "late" not in ran


def test_a_place_is_given_back_though_the_item_failed(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def fail(_):
        raise RuntimeError

    pool = a_pool(fail)
    put(pool, 0)
    assert wait_until(lambda: pool.is_idle)
