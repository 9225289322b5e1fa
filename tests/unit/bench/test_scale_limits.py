"""The limits of AWS in the simulation of scale are as they are told."""

from random import Random

import pytest

from bench.scale.measure import minutes_to_reach
from bench.scale.parameters import Aws, Latency, Ramp
from bench.scale.table import Allowance
from bench.units import read_units, write_units


def test_an_allowance_gives_its_rate_and_no_more() -> None:
    allowance = Allowance(1000, burst_seconds=1)
    taken = sum(allowance.take(1, now=tick / 5000) for tick in range(50_000))
    assert taken == pytest.approx(1000 + 10 * 1000, abs=2)


def test_an_allowance_keeps_no_more_than_its_burst() -> None:
    allowance = Allowance(10, burst_seconds=2)
    assert not allowance.take(21, now=1000)
    assert allowance.take(20, now=1000)
    assert not allowance.take(1, now=1000)


def test_what_is_refused_takes_nothing() -> None:
    allowance = Allowance(10, burst_seconds=1)
    assert not allowance.take(11, now=0)
    assert allowance.take(10, now=0)


def test_a_latency_has_the_median_and_the_99th_percentile_that_it_is_told_by() -> None:
    random, latency = Random(1), Latency(p50=0.016, p99=0.105)
    drawn = sorted(latency.draw(random) for _ in range(100_000))
    assert drawn[50_000] == pytest.approx(0.016, rel=0.02)
    assert drawn[99_000] == pytest.approx(0.105, rel=0.05)


@pytest.mark.parametrize(("p50", "p99"), [(0, 1), (-1, 1), (2, 1)])
def test_a_latency_that_is_none_is_refused(p50: float, p99: float) -> None:
    with pytest.raises(ValueError, match="must be over 0"):
        Latency(p50=p50, p99=p99)


def test_a_ramp_begins_with_its_first_and_grows_evenly_to_its_most() -> None:
    starts = Ramp(first=5, a_minute=300, most=1250).starts(2000)
    assert len(starts) == 1250
    assert starts[:7] == pytest.approx([0, 0, 0, 0, 0, 0.2, 0.4])
    assert sum(start <= 60 for start in starts) == 305


def test_a_new_table_doubles_until_it_takes_the_rate() -> None:
    assert minutes_to_reach(3_000, first=4_000, doubling_minutes=30) == 0
    assert minutes_to_reach(8_000, first=4_000, doubling_minutes=30) == 30
    assert minutes_to_reach(64_000, first=4_000, doubling_minutes=30) == 120


@pytest.mark.parametrize(("size", "writes", "reads"), [(200, 1, 1), (1024, 1, 1), (1025, 2, 1), (4097, 5, 2)])
def test_a_write_unit_is_a_kib_and_a_read_unit_four(size: int, writes: int, reads: int) -> None:
    assert (write_units(size), read_units(size)) == (writes, reads)


def test_what_is_slowed_takes_so_many_times_as_long_and_allows_so_many_times_less() -> None:
    as_it_is, slowed = Aws(), Aws().slowed(20)
    assert slowed.dynamodb.writes_per_key == as_it_is.dynamodb.writes_per_key / 20
    assert slowed.dynamodb.reads_per_key == as_it_is.dynamodb.reads_per_key / 20
    assert slowed.dynamodb.writes_per_key * slowed.dynamodb.burst_seconds == 1000
    assert slowed.sqs.send.p99 == pytest.approx(20 * as_it_is.sqs.send.p99)
    assert slowed.functions.tick_cpu == pytest.approx(20 * as_it_is.functions.tick_cpu)
    assert slowed.deployed.lease == as_it_is.deployed.lease
    assert slowed.times == 20
