"""What a million jobs cost, by their way, their rate and their wait, out of steps that are simple to reckon with."""

import json

import pytest

from bench.cost.aims import targets
from bench.cost.figures import CHEAPEST, CODED, HTTP_SINGLY, OF_JSON, OURS, SCHEDULER, dearer, figures, ratios
from bench.cost.payloads import JSON, SIZES
from bench.cost.plan import BATCHED as DYNEIN_BATCHED
from bench.cost.plan import CALL_JOBS, FULL, HIGH, LINGERING, RATES, Load, named
from bench.cost.plan import CODED as DYNEIN
from bench.cost.step import Step
from bench.cost.ways import Costs, Way, total
from bench.headline import headline
from bench.part import Measured
from bench.results import Result
from dueline.model.job import Route
from tests.unit.bench.test_cost import a_biller


@pytest.fixture
def costs():
    """A bill of steps that are simple to reckon with: one write a job, a fence read a call, a tick's send for ten."""
    steps = {LINGERING: Step(jobs=8, calls={"POST": 2}), named("tick", 0, "1 KB"): Step(jobs=0, writes=1)}
    for load in (Load(rate=rate) for rate in RATES):
        ticked = FULL.ticked(load)
        for which in (DYNEIN, DYNEIN_BATCHED):
            for size in SIZES:
                steps[named(which, "in", size)] = Step(jobs=10, writes=10, sent=30)
                steps[named(which, "out", load.polled, size)] = Step(jobs=load.polled, writes=2 * load.polled)
        for size in (*SIZES, JSON):
            steps[named("tick", ticked, size)] = Step(jobs=ticked, sent=ticked // 10)
    for size in (*SIZES, JSON):
        for by, jobs in (
            (by, jobs) for by in ("direct", "http", "keyed", "buffered") for jobs in (1, 4, 10, CALL_JOBS)
        ):
            steps[named(by, Route.TABLE, jobs, size)] = Step(jobs=jobs, writes=jobs, reads=1, state_reads=1)
            steps[named(by, Route.DIRECT, jobs, size)] = Step(jobs=jobs, sent=1, grouped=1)
    batch = Load(rate=HIGH).ingested
    steps[named("ingest", batch.jobs, batch.partitions, "1 KB")] = Step(jobs=batch.jobs, writes=batch.jobs)
    row_bytes = {size.name: size.row_bytes for size in (*SIZES, JSON)}
    return Costs(steps=steps, plan=FULL, biller=a_biller(), row_bytes=row_bytes)


def test_the_direct_route_pays_for_no_table_and_the_table_route_for_the_days_that_its_row_is_kept(costs):
    load, tens = Load(rate=10_000), Way(by="direct", jobs=10)
    direct = costs.dueline(Way(by="direct", jobs=10, route=Route.DIRECT), load=load)
    assert total(direct) == pytest.approx(0.05, abs=0.001)
    a_day, a_month = (costs.dueline(tens, load=load, days=days) for days in (1, 31))
    assert a_day["DynamoDB writes"] == 0.625
    assert a_day["SQS requests"] == pytest.approx(0.04)
    assert a_month["storage"] / a_day["storage"] == pytest.approx((31 + 9) / (1 + 9))


def test_what_goes_by_the_buffer_is_received_ingested_and_deleted_besides(costs):
    load = Load(rate=HIGH)
    straight, buffered = (costs.dueline(Way(by=by, jobs=1), load=load) for by in ("http", "buffered"))
    assert buffered["SQS requests"] - straight["SQS requests"] == pytest.approx(2 * 0.04)
    assert buffered["DynamoDB writes"] - straight["DynamoDB writes"] == pytest.approx(0.625)


def test_callers_that_linger_share_a_request_and_a_fence(costs):
    alone, lingered = (costs.dueline(Way(by=by, jobs=1), load=Load(rate=HIGH)) for by in ("http", "lingering"))
    for line in ("HTTP API", "DynamoDB reads", "Lambda"):
        assert lingered[line] == pytest.approx(alone[line] / 4, rel=0.05)
    assert lingered["DynamoDB writes"] == alone["DynamoDB writes"]


def test_what_is_paid_by_the_month_is_shared_by_the_jobs_of_it(costs):
    slow, fast = (costs.dueline(Way(by="direct", jobs=10), load=Load(rate=rate)) for rate in (1, 10_000))
    assert slow["metrics and alarms"] == pytest.approx((10 * 0.30 + 13 * 0.10) / (730 * 3600) * 1_000_000)
    assert fast["metrics and alarms"] == pytest.approx(slow["metrics and alarms"] / 10_000)


def test_dynein_keeps_its_row_no_longer_than_its_job_waits(costs):
    bill = costs.dynein(batched=False, load=Load(rate=10_000), days=30)
    assert bill["DynamoDB writes"] == pytest.approx(3 * 0.625)
    assert bill["SQS requests"] == pytest.approx(3 * 0.40)
    assert bill["storage"] == pytest.approx(1124 / 1000 * 30 / (365 / 12) * 0.25)


def test_the_scheduler_is_free_for_its_first_14_million_a_month(costs):
    assert costs.scheduler(load=Load(rate=1)) == {"SQS requests": 0.40}
    assert total(costs.scheduler(load=None)) == pytest.approx(1.40)
    month = 100 * 730 * 3600
    assert costs.scheduler(load=Load(rate=100))["EventBridge Scheduler"] == pytest.approx(1 - 14e6 / month)


def test_where_we_are_dearer_is_told_from_the_figures():
    month = {HTTP_SINGLY: 1.0, OF_JSON: 1.0, CHEAPEST: 1.0, CODED: 6.0, "Dynein batched": 5.0, SCHEDULER: 1.4}
    told = {
        "by_rate": {"1": {OURS: 4.0, CODED: 3.0, f"{OURS}, provisioned": 9.0}, "100": {OURS: 1.0, CODED: 3.0}},
        "by_wait": {"1": {**month, OURS: 9.0}, "180": {**month, OURS: 4.0}},
    }
    assert list(dearer(told)) == [
        (f"{OURS}, 1 job/s", CODED, 4.0, 3.0),
        (f"{OURS}, 180 days' wait, 10,000 jobs/s", SCHEDULER, 4.0, 1.4),
    ]


def test_each_target_of_cost_says_why_it_would_be_missed(costs):
    told = json.loads(json.dumps(figures(costs)))
    assert all(target.why for target in targets(told))
    by_name = {target.what: target for target in targets(told)}
    keyed = by_name["$ a million jobs: the same with the caller's key"]
    assert (keyed.before, keyed.bound) == (4.96, 3.75)
    assert "two writes" in keyed.why
    assert by_name["cost in tens, of Dynein as coded"].got == ratios(told)["of Dynein as coded"]


def test_readme_leads_with_the_path_that_it_shows_first_and_says_where_others_are_cheaper(costs):
    told = json.loads(json.dumps(figures(costs)))
    steps = {"submit": {"0": {"cpu_ms": 1}, "9": {"cpu_ms": 1}}}
    others = {
        "growth": {"sizes": ["0", "9"], "steps": steps},
        "cpu": {"jobs_a_second": {"tick": {"Dueline": 9}}, "against": {"tick": {"Dynein": 3, "Dynein batched": 2}}},
    }
    lines = headline({name: a_result(each) for name, each in {"cost": told, **others}.items()}).splitlines()
    assert lines[2].startswith("| $ a million jobs, over HTTP, one by one, all in |")
    assert "1.40 with EventBridge Scheduler" in lines[2]
    assert "HTTP, one by one at every rate" in lines[-1]
    assert "in tens after a wait of 180 days" in lines[-1]


def a_result(told):
    measured = Measured(figures=told, ratios={})
    return Result(part="", quick=False, on={}, seconds=0.0, measured=measured)
