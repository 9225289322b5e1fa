"""Who is early, late, lost or repeated; and what the contenders' bills say."""

import pytest

from bench.bill import OURS as TENS
from bench.lateness import OURS, WORKER, figures_of, is_first_seen, targets
from bench.load import FLOW, RUSH, Ledger, Load, Schedule
from bench.redis import Cache, bills, crossing, dueline_dollars

COST = {
    "by_wait": {"1": {TENS: 1.0}, "30": {TENS: 1.58}},
    "by_rate": {"1": {TENS: 4.0}, "100": {TENS: 1.5}, "10000": {TENS: 1.0}},
}
CACHE = Cache(ecpus=5.0, job_bytes=1000.0)


def a_ledger(*landed, **cancelled):
    """Return the ledger of three jobs, due 10, 20 and 30 s after 0."""
    return Ledger(dues={1: 10.0, 2: 20.0, 3: 30.0}, landed=landed, **cancelled)


def test_lateness_is_of_the_first_arrival():
    ledger = a_ledger((1, 12.5), (2, 20.5), (1, 10.25), (3, 31.0), (1, 11.0), (-1, 0.0))
    assert ledger.lateness() == {1: 0.25, 2: 0.5, 3: 1.0}
    summary = ledger.summary()
    assert (summary["repeated"], summary["lost"], summary["early"]) == (2, 0, 0)
    assert (summary["p50"], summary["p99"], summary["max"]) == (0.5, 1.0, 1.0)


def test_missing_job_is_lost_unless_cancelled():
    assert a_ledger((1, 10.5)).lost == {2, 3}
    assert a_ledger((1, 10.5), cancelled={2}, maybe_cancelled={3}).lost == set()
    assert a_ledger((2, 20.5), (3, 30.5), cancelled={2}).summary()["after a promised cancel"] == 1
    assert a_ledger((1, 70.0), (2, 80.1), (3, 29.9)).summary()["on time"] == pytest.approx(1 / 3)


def test_unexplained_repeat_counts():
    load = Load(first=5, steady=115, rush=40)
    schedule = Schedule(begin=1_800_000_000, jobs=load.dues())
    killed, other = (
        next(due.number for due in load.dues() if due.queue == "mails" and is_first_seen(due, by=4) is is_killed)
        for is_killed in (True, False)
    )
    landed = [(number, at + 0.25) for number, at in schedule.dues.items()]
    landed += [(number, schedule.dues[number] + 1) for number in (killed, other)]
    figures = figures_of(Ledger(dues=schedule.dues, landed=landed), load.dues())
    assert figures["contenders"][OURS][FLOW]["jobs"] == 3 * figures["contenders"][WORKER][FLOW]["jobs"] == 1725
    assert figures["contenders"][OURS][RUSH]["jobs"] == 30
    got = {target.what: target.got for target in targets(figures)}
    assert (got["repeats by a killed tick"], got["repeats that no kill explains"]) == (1, 1)


@pytest.mark.parametrize("rate", [100, 10_000])
def test_redis_costs_more_after_the_crossing(rate):
    hours = crossing(CACHE, COST, rate)
    assert CACHE.dollars(rate, hours) >= dueline_dollars(COST, rate, hours)
    assert CACHE.dollars(rate, hours - 0.1) < dueline_dollars(COST, rate, hours - 0.1)
    assert bills(Cache(ecpus=1000.0, job_bytes=1000.0), COST)["crossing"][str(rate)] == 0
