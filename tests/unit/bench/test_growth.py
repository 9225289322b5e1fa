from array import array
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest

from bench.growth import drain
from bench.growth.deployment import HAND_OVER
from bench.growth.drain import DUE, ROW_BYTES, Drained, a_row
from bench.growth.herd import of, stampede
from bench.growth.latency import Latency
from bench.growth.measure import COUNTS, cpu_of_a_job_ms, growth_of, ratios_of, targets_of
from bench.growth.meter import Meter
from bench.growth.report import markdown
from dueline.model.units import write_units
from tests.builders import EMAILS

ROOT = Path(__file__).parents[3]
SLOW = Latency(send=1.0, write=0.010, page=0.100, job_cpu=0.001, vcpu=0.1)


def a_herd(jobs=3000, *, partitions=1, latency=None):
    return stampede(jobs, partitions=partitions, latency=latency or Latency(), tell=lambda: None)


@pytest.mark.parametrize("partitions", [1, 4])
def test_each_job_of_a_herd_comes_once_and_none_early(partitions):
    herd = a_herd(partitions=partitions)
    assert [herd[name] for name in ("delivered", "lost", "repeated", "early")] == [3000, 0, 0, 0]
    assert herd["lateness"]["max"] < 1.1
    assert herd["over_time"][-1][1] == 3000


def test_a_herd_is_the_same_each_time_but_for_its_cpu():
    first, second = a_herd(), a_herd()
    assert first.pop("cpu_seconds") > 0
    assert second.pop("cpu_seconds") > 0
    assert first == second


def test_a_herd_that_one_partition_cannot_send_in_time_is_late_and_four_send_it_sooner():
    one, four = a_herd(latency=SLOW, jobs=12_000), a_herd(latency=SLOW, jobs=12_000, partitions=4)
    # A tick has one processor's tenth for 10 ms a job, and 1 s a wave of 100: 50 jobs a second at most.
    assert one["last_sent"] - one["first_sent"] > 12_000 / 50
    assert one["lateness"]["max"] > four["lateness"]["max"] + 30
    assert one["ticks_with_the_lease"] > 1
    assert (one["lost"], one["repeated"], one["early"]) == (0, 0, 0)


def test_what_no_tick_sends_in_a_day_is_lost(monkeypatch):
    monkeypatch.setattr(drain, "_MOST_MINUTES", 3)
    herd = a_herd(jobs=20_000, latency=SLOW)
    assert herd["lost"] > 0
    assert herd["lost"] + herd["delivered"] == 20_000


def test_a_herds_requests_are_those_of_batches_of_ten_and_pages_of_1_mb():
    herd = a_herd(jobs=2048)
    assert herd["requests"]["SendMessageBatch"] == 2 * 103
    assert herd["read_units"] >= 2048 * ROW_BYTES / 4096
    assert herd["write_units"] == herd["requests"]["UpdateItem"]


def test_what_is_lost_repeated_or_early_is_told():
    drained = Drained(visible=array("d", [-0.001, 0.0, 0.5]), times=Counter({1: 1, 2: 2}), first=-1.0, last=0.5)
    figures = of([drained], jobs=3)
    assert [figures[name] for name in ("delivered", "lost", "repeated", "early")] == [2, 1, 1, 1]
    assert figures["lateness"] == {"p50": 0.0, "p99": 0.5, "max": 0.5}


def test_rows_of_a_herd_have_1_kib():
    assert write_units(a_row(EMAILS, due=DUE)) == 1
    row = a_row(EMAILS, due=DUE + timedelta(days=1))
    assert write_units({**row, "payload": f"{row['payload']}1"}) == 2


def test_a_ticks_share_of_a_processor_is_that_of_its_memory():
    function = (ROOT / "infra" / "constructs" / "function.py").read_text()
    assert "_MEMORY_MB = 512\n" in function
    assert Latency().vcpu == 512 / 1769
    assert replace(Latency(), vcpu=0.5, job_cpu=0.001).cpu(10) == pytest.approx(0.020)


def a_cost(**overrides):
    given = {"requests": {"Query": 1}, "bytes_out": 10, "bytes_in": 20, "read_units": 1.0, "write_units": 0.0}
    return {**given, "cpu_ms": 2.0, **overrides}


@cache
def herds():
    return [a_herd(jobs=100, partitions=partitions) for partitions in (1, 4)]


def figures_of(**million):
    steps = {"submit": {"0": a_cost(), "10": a_cost(), "1000000": a_cost(**million)}}
    steps[HAND_OVER] = {size: a_cost(cpu_ms=300.0) for size in steps["submit"]}
    engine = {"Query of nothing": dict.fromkeys(steps["submit"], 2.0)}
    latency = {"send": 0.02, "write": 0.01, "page": 0.1, "job_cpu": 0.00025, "vcpu": 0.29}
    sizes = list(steps["submit"])
    return {"sizes": sizes, "rounds": 1, "steps": steps, "engine_ms": engine, "herds": herds(), "latency": latency}


def missed(figures):
    return [target.what for target in targets_of(figures) if not target.is_met]


def test_flat_costs_meet_every_target():
    assert missed(figures_of()) == []
    assert {name: ratio for name, ratio in ratios_of(figures_of()).items() if "CPU" in name} == {
        "CPU of submit, 1,000,000 waiting to none": 1.0,
        f"CPU of {HAND_OVER}, 1,000,000 waiting to none": 1.0,
    }


@pytest.mark.parametrize("what", COUNTS)
@pytest.mark.parametrize("by", [-1, 1])
def test_a_count_that_grows_or_falls_misses_its_target(what, by):
    grown = {"Query": 3 + by} if what == "requests" else 10 + by
    figures = figures_of(**{what: grown})
    figures["steps"]["submit"]["0"][what] = figures["steps"]["submit"]["10"][what] = (
        {"Query": 3} if what == "requests" else 10
    )
    assert missed(figures) == [f"{what.replace('_', ' ')} of any step, 1,000,000 waiting to none"]


def test_a_count_that_grows_from_none_misses_its_target():
    assert missed(figures_of(write_units=1.0)) == ["write units of any step, 1,000,000 waiting to none"]


def test_cpu_may_grow_by_a_tenth():
    assert missed(figures_of(cpu_ms=2.19)) == []
    assert missed(figures_of(cpu_ms=2.21)) == ["CPU of submit, 1,000,000 waiting to none"]
    assert growth_of(figures_of(cpu_ms=2.5), "cpu_ms")["submit"] == 1.25
    assert cpu_of_a_job_ms(figures_of()) == 0.3


def test_the_tables_tell_every_step_size_and_herd():
    told = markdown(figures_of(cpu_ms=2.5))
    assert "| submit | 1,000,000 | Query | 10 | 20 | 1 | 0 | 2.50 | 1.25 |" in told
    assert "(this run measured 0.30)" in told
    assert "| 4 | " in told
    assert "/growth-cpu.svg" in told
    assert "/growth-herd.svg" in told


@pytest.fixture
def meter():
    session = boto3.Session(region_name="us-east-1")
    meter = Meter(session)
    meter.emit = session.events.emit
    return meter


def test_a_meter_counts_bytes_with_headers_but_for_a_checksum_of_uneven_length(meter):
    request = SimpleNamespace(method="POST", url="http://h/", headers={"a": "bc"}, body=b"12345")
    meter.emit("before-send.dynamodb.Query", request=request)
    answer = {"headers": {"x-amz-crc32": "1234567890", "d": "e"}, "body": b"123"}
    meter.emit("response-received.dynamodb.Query", response_dict=answer)
    cost = meter.take()
    assert cost.requests == {"Query": 1}
    assert cost.bytes_out == len("POST http://h/ HTTP/1.1\r\n" + "a: bc\r\n" + "12345")
    assert cost.bytes_in == len("d: e\r\n" + "123")
    assert meter.take().requests == {}


def test_a_meter_asks_for_units_only_when_told_and_counts_a_query_of_nothing_as_one(meter):
    params = {}
    query = SimpleNamespace(name="Query", idempotent_members=[])
    meter.emit("before-parameter-build.dynamodb.Query", params=params, model=query)
    assert params == {}
    meter.asks = True
    meter.emit("before-parameter-build.dynamodb.Query", params=params, model=query)
    assert params == {"ReturnConsumedCapacity": "TOTAL"}
    for name, units in (("Query", 0), ("PutItem", 2), ("BatchGetItem", 5)):
        consumed = {"CapacityUnits": units}
        parsed = {"ConsumedCapacity": [consumed] if name.startswith("Batch") else consumed}
        meter.emit(f"after-call.dynamodb.{name}", parsed=parsed, model=SimpleNamespace(name=name))
    cost = meter.take()
    assert (cost.read_units, cost.write_units) == (6.0, 2.0)
