"""What is computed of what the delayed queue on Redis did."""

import os

import pytest

from bench.cost.prices import prices
from bench.redis.kills import Told, outcome
from bench.redis.price import Cache, Table, crossing, told
from bench.redis.unwritten import check_that_it_is_told, written_bytes

CACHE = Cache(ecpus=5.0, job_bytes=1000.0, prices=prices())
PAGE = os.sysconf("SC_PAGE_SIZE")
TABLE = Table(of_a_day={"1": 4.0, "100": 1.5, "10000": 1.0}, a_day=0.02, received=0.08)


def test_what_waits_is_charged_by_the_hour_and_a_small_cache_as_if_it_were_larger():
    a_day, two = (CACHE.dollars(10_000, hours) for hours in (24, 48))
    assert two - a_day == pytest.approx(24 * 0.084)
    assert CACHE.waiting_gb(1, 1) == pytest.approx(0.0036)
    assert CACHE.dollars(1, 1) == CACHE.dollars(1, 27) < CACHE.dollars(1, 28)


def test_dueline_costs_what_the_part_cost_says_at_a_wait_of_a_day_and_as_much_more_as_its_rows_are_kept_longer():
    cost = {
        "by_wait": {"1": {"Dueline, in tens": 1.0}, "30": {"Dueline, in tens": 1.58}},
        "by_rate": {rate: {"Dueline, in tens": each} for rate, each in TABLE.of_a_day.items()},
    }
    of_cost = Table.of(cost, prices())
    assert of_cost.dollars(10_000, 24) == pytest.approx(1.0 + 2 / 10 * 0.40)
    assert of_cost.dollars(10_000, 720) == pytest.approx(1.58 + 2 / 10 * 0.40)


@pytest.mark.parametrize("rate", [100, 10_000])
def test_redis_is_dearer_from_where_the_bills_cross_and_cheaper_before(rate):
    hours = crossing(CACHE, TABLE, rate)
    assert CACHE.dollars(rate, hours) >= TABLE.dollars(rate, hours)
    assert CACHE.dollars(rate, hours - 0.1) < TABLE.dollars(rate, hours - 0.1)


def test_a_cache_that_is_dearer_at_once_is_said_to_be():
    dear = Cache(ecpus=1000.0, job_bytes=1000.0, prices=prices())
    assert told(dear, TABLE)["crossing"]["10000"] == 0


def test_what_was_written_and_not_synced_is_told_from_what_is_on_the_disk(tmp_path):
    try:
        check_that_it_is_told(tmp_path)
    except OSError:
        pytest.skip("this kernel or file system does not tell")
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(b"x" * 10 * PAGE)
        assert written_bytes(tmp_path / "file") == PAGE


def test_a_job_is_lost_that_was_accepted_and_is_neither_begun_nor_kept():
    heard = Told(begun=0.0, accepted={1: 1.0, 2: 2.0, 3: 3.0, 4: 3.5}, unanswered=frozenset({5}))
    assert outcome(heard, begun={1, 4}, kept={1, 2, 5}) == {
        "accepted": 4,
        "lost": 1,
        "oldest": 0.5,
        "repeated": 1,
    }


def test_a_job_that_nobody_scheduled_fails_the_run():
    with pytest.raises(RuntimeError, match="1 jobs are there that nobody scheduled"):
        outcome(Told(begun=0.0, accepted={1: 1.0}), begun={1}, kept={2})
