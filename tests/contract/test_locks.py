"""That one job of a schedule has its lock, on every engine."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.builders import NOW
from tests.contract.engines import TABLES, TABLES_UNDER_THREADS

LATER, STILL_LATER = NOW + timedelta(seconds=35), NOW + timedelta(seconds=70)


@pytest.fixture
def locks(engine):
    return engine.locks()


def take(locks, job, *, schedule="digest", now=NOW, until=LATER):
    return locks.take(schedule, job=job, now=now, until=until)


@pytest.mark.parametrize("engine", TABLES, indirect=True)
def test_lock_is_one_jobs_until_it_expires_or_is_freed(locks):
    assert take(locks, "a")
    assert not take(locks, "b", now=LATER - timedelta(milliseconds=1))
    assert take(locks, "b", schedule="report")
    assert take(locks, "b", now=LATER, until=STILL_LATER)
    locks.free("digest", job="a")
    assert not take(locks, "a", now=LATER)
    locks.free("digest", job="b")
    assert take(locks, "a", now=LATER)


@pytest.mark.parametrize("engine", TABLES, indirect=True)
def test_a_job_that_has_a_lock_gets_it_again_for_longer(locks):
    assert take(locks, "a")
    assert take(locks, "a", until=STILL_LATER)
    assert not take(locks, "b", now=LATER)


@pytest.mark.parametrize("engine", TABLES, indirect=True)
def test_a_renewal_takes_no_lock_that_was_freed_or_is_anothers(locks):
    assert not locks.renew("digest", job="a", until=LATER)
    assert take(locks, "a")
    assert locks.renew("digest", job="a", until=STILL_LATER)
    assert not take(locks, "b", now=LATER)
    locks.free("digest", job="a")
    assert not locks.renew("digest", job="a", until=STILL_LATER)
    assert take(locks, "b")
    assert not locks.renew("digest", job="a", until=STILL_LATER)


@pytest.mark.parametrize("engine", TABLES, indirect=True)
def test_expired_lock_is_renewed_unless_another_took_it(locks):
    assert take(locks, "a")
    assert locks.renew("digest", job="a", until=STILL_LATER)
    assert not take(locks, "b", now=LATER)


@pytest.mark.parametrize("engine", TABLES_UNDER_THREADS, indirect=True)
def test_of_jobs_that_take_a_lock_at_once_one_gets_it(locks):
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda number: take(locks, f"job {number}"), range(16))) == 1
