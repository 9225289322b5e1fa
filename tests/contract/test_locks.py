"""That one job of a schedule has its lock, on every engine."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.builders import NOW
from tests.contract.engines import TABLES

pytestmark = pytest.mark.parametrize("engine", TABLES, indirect=True)

LATER, STILL_LATER = NOW + timedelta(seconds=35), NOW + timedelta(seconds=70)


@pytest.fixture
def locks(engine):
    return engine.locks()


def take(locks, job, *, schedule="digest", now=NOW, until=LATER):
    return locks.take(schedule, job=job, now=now, until=until)


def test_lock_is_held_until_expired_or_freed(locks):
    assert take(locks, "a")
    assert not take(locks, "b", now=LATER - timedelta(milliseconds=1))
    assert take(locks, "b", schedule="report")
    assert take(locks, "b", now=LATER, until=STILL_LATER)
    locks.free("digest", job="a")
    assert not take(locks, "a", now=LATER)
    locks.free("digest", job="b")
    assert take(locks, "a", now=LATER)


def test_holder_extends_its_lock(locks):
    assert take(locks, "a")
    assert take(locks, "a", until=STILL_LATER)
    assert not take(locks, "b", now=LATER)


def test_one_of_concurrent_jobs_gets_the_lock(locks):
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda number: take(locks, f"job {number}"), range(16))) == 1
