"""What a deployment costs a month without a job, by its templates, its functions' metrics and the price list."""

import json

import pytest

from bench.bill import (
    MILLION,
    PRICES,
    SECONDS_A_MONTH,
    TICK_SECONDS,
    Biller,
    Deployed,
    looks_month,
    named,
    polls_month,
    watch_price,
)
from bench.counted import Step
from bench.payloads import USUAL
from dueline.config import metrics
from dueline.functions.telemetry import report
from tests.template.synthesis import ROOT, Assembly, Template

MOST = {1: 3.50, 6: 4.00, 50: 9.00}


@pytest.fixture(scope="session")
def idle_partition() -> float:
    """What a tick of nothing costs, a month of them: its firing, its invocation and a write."""
    counted = json.loads((ROOT / "bench" / "results" / "cost.json").read_text())["figures"]["counted"]
    step = Step(**counted[named("tick", 0, USUAL)])
    deployed = Deployed(
        memory_mb=512,
        queue_alarms=0,
        core_alarms=0,
        queue_metrics=0,
        core_metrics=0,
        idle_metrics=0,
        access_log_bytes=0,
        log_days=30,
        logs_its_platform=False,
    )
    tick = Biller(deployed=deployed).invocation(step, jobs=1) + PRICES.schedule_million
    return tick * SECONDS_A_MONTH / TICK_SECONDS / MILLION


def _alarms(templates: list[Template]) -> int:
    """Return on how many metrics alarms are, by which they are paid."""
    alarms = [each for template in templates for each in template.of_type("AWS::CloudWatch::Alarm").values()]
    return sum(
        sum("MetricStat" in metric for metric in alarm["Metrics"]) if "Metrics" in alarm else 1 for alarm in alarms
    )


def _reported(capsys: pytest.CaptureFixture[str]) -> int:
    """Return how many metrics the functions report where nothing is scheduled."""
    idle = dict.fromkeys((*metrics.OF_THE_WATCH, metrics.TTL_OFF), 0) | {metrics.ON_TIME_SHARE: None}
    report(idle, deployment="d", of_queues={"emails": {metrics.LATENESS: 0.0, metrics.DISPATCHED: 0}})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return sum(len(each["Metrics"]) for line in lines for each in line.get("_aws", {}).get("CloudWatchMetrics", ()))


@pytest.mark.parametrize("queues", MOST)
def test_idle_deployment_costs_little(
    measured: Assembly, idle_partition: float, capsys: pytest.CaptureFixture[str], queues: int
) -> None:
    """New queues change no other stack: so each more costs what one does."""
    templates = [measured.core, *[measured.queues["plain"]] * queues]
    assert not any(template.of_type("AWS::Logs::MetricFilter") for template in templates)
    ticks = sum(len(each.of_type("AWS::Scheduler::Schedule")) for each in templates) - 1
    assert ticks == queues + 1
    sources = len(measured.core.of_type("AWS::Lambda::EventSourceMapping"))
    watched = watch_price(metrics=_reported(capsys), alarms=_alarms(templates))
    looks = looks_month(partitions=ticks, dead_letters=queues + 3)
    amount = watched + looks + ticks * idle_partition + sources * polls_month()
    assert amount <= MOST[queues], amount


def test_queues_have_alarms_by_setting(measured: Assembly) -> None:
    assert _alarms([measured.queues["measured"]]) == 3
    assert _alarms([measured.queues["plain"]]) == 0
