"""What a schedule costs a month follows from its steps and runs; nothing looks at other schedules."""

import json

import pytest

from bench.cost.bill import Biller, Terms
from bench.cost.prices import prices
from bench.cost.step import Step
from bench.growth.latency import Latency
from bench.schedules import PART, others
from bench.schedules.measure import targets
from bench.schedules.month import ALONE, AMONG, Months
from bench.schedules.nine import at_nine
from tests.unit.bench.test_cost import DEPLOYED


def a_step(jobs, writes=0.0, reads=0.0, sent=0):
    step = Step(jobs=jobs, writes=writes, reads=reads, sent=sent, calls={"BatchWriteItem": 1})
    return {name: getattr(step, name) for name in step.__slots__}


COUNTED = {
    "steps": {
        f"{how}|{many}": a_step(many, writes=many * (2.0 + runs), reads=3.0)
        for how, runs in (("minutely", 15), ("hourly", 1), ("daily", 1))
        for many in (1, 10)
    },
    "ticks": {"0": a_step(0, writes=1.0), "1": a_step(1, writes=2.0, sent=1), "600": a_step(600, writes=4.0, sent=60)},
    "watch": a_step(200, reads=14.0),
    "runs_a_step": {"minutely": 15, "hourly": 1, "daily": 1},
    "row_bytes": {"run": 205, "planning job": 202, "head": 267},
}
SPEEDS = {how: {"planner": 400.0, "boto3": 500.0, "ratio": 0.8} for how in COUNTED["runs_a_step"]}


@pytest.fixture
def months():
    known = prices()
    return Months(counted=COUNTED, biller=Biller(prices=known, deployed=DEPLOYED, terms=Terms.on_demand(known)))


def test_a_schedule_pays_for_its_runs_its_steps_and_a_look_an_hour(months):
    a_run = 0.40 + 0.625 + _kept(205)
    # Its send with what a tick writes more; a receive and a delete of a fair queue; the function; three writes.
    a_step = 0.40 + 0.625 + _kept(202) + 2 * (0.40 + 0.10) + 3 * 0.625 + 3 * 0.125
    a_look = 14 * 0.125 / 200
    requests = (730 / 24 * (a_run + a_step) + 730 * a_look) / 1_000_000
    assert requests < months.schedule("daily", ALONE) < 1.3 * requests


def _kept(row_bytes):
    return (row_bytes + 100) / 1000 * 9 / (365 / 12) * (0.25 + 0.20)


def test_a_run_is_cheaper_among_many_and_where_a_step_makes_fifteen(months):
    told = months.figures()
    assert all(each[AMONG] < each[ALONE] for each in told.values())
    a_run = {how: each[ALONE] / each["runs"] for how, each in told.items()}
    assert a_run["minutely"] < a_run["hourly"] < a_run["daily"]
    assert told["daily"]["scheduler"] == pytest.approx(730 / 24 * 1.40 / 1_000_000)


def test_no_call_for_a_schedule_looks_at_others():
    none = others.costs(0)
    assert others.costs(300) == none
    assert none["look up"] == {"calls": {"read": 1}, "rows": 2}


def test_what_was_measured_is_told_and_a_call_that_grows_misses_its_target(months):
    nine = at_nine(40, cpu=0.002, latency=Latency(), tell=lambda: None)
    none = others.costs(0)
    figures = {**COUNTED, "months": months.figures(), "idle": months.idle(), "a_cpu_second": SPEEDS, "nine": nine}
    figures = json.loads(json.dumps(figures | {"others": {"0": none, "9": none}}))
    told = PART.markdown(figures)
    assert "Of 40 daily schedules, the runs are made 15.0 to 15.0 minutes before they are due." in told
    assert "| create | 1 change, 2 read, 1 write: 5 rows | 1 change, 2 read, 1 write: 5 rows |" in told
    assert all(target.is_met for target in targets(figures))
    grown = {"0": none, "9": none | {"change": {"calls": {"read": 9}, "rows": 9}}}
    assert [each.got for each in targets(figures | {"others": grown}) if not each.is_met] == [1]
