"""`dueline verify` makes each alarm of its sandbox ring, and by figures that the alarm is about."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml

from dueline.aws.sandbox.alarms import what_it_is_on
from dueline.config import metrics
from dueline.verify.checks.alarms import ON_DEAD_LETTERS, ON_FAULTS
from dueline.verify.checks.alarms_by_figure import BY_FIGURE
from dueline.verify.sandbox import NAME, PLAIN, QUEUES
from tests.template.synthesis import ROOT, Assembly, synthesize

RUNG = {*ON_FAULTS, *BY_FIGURE}


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    shipped = (ROOT / "dueline" / "verify" / "queues.yaml").read_text()
    return synthesize(yaml.safe_load(shipped), tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="session")
def alarms(sandbox: Assembly) -> dict[str, dict[str, Any]]:
    """The alarms of all stacks by what they are on, as the checks find them."""
    return dict(_alarms(sandbox))


def _alarms(sandbox: Assembly) -> Iterator[tuple[str, dict[str, Any]]]:
    for stack, template in sandbox.templates.items():
        for id, alarm in template.of_type("AWS::CloudWatch::Alarm").items():
            on = what_it_is_on(f"{stack}-{id}-AbC", sandbox.deployment.names)
            assert on, f"no check finds {id} of {stack}"
            yield on, alarm


def test_no_alarm_is_without_a_check_that_makes_it_ring(alarms: dict[str, dict[str, Any]]) -> None:
    # Those on dead letters are rung by their name, of whichever queue.
    assert {_of_one_queue(on) for on in alarms if ON_DEAD_LETTERS not in on} == RUNG


def _of_one_queue(on: str) -> str:
    """Return what an alarm of any queue is on as that of the one queue whose alarms are rung: they are all alike."""
    queue, _, what = on.partition(" ")
    return f"{PLAIN} {what}" if what and queue in QUEUES else on


@pytest.mark.parametrize("on", BY_FIGURE)
def test_a_figure_is_one_by_which_its_alarm_rings(alarms: dict[str, dict[str, Any]], on: str) -> None:
    alarm, told = alarms[on], BY_FIGURE[on]
    stats = _stats(alarm)
    assert {each["MetricName"] for each in stats} == set(told.rings)
    for each in stats:
        of = {one["Name"]: one["Value"] for one in each["Dimensions"]}
        assert (each["Namespace"], of) == (metrics.NAMESPACE, metrics.dimensions(NAME, told.queue))
        assert timedelta(seconds=each["Period"]) * alarm["EvaluationPeriods"] == told.window
    periods = alarm["EvaluationPeriods"]
    assert (alarm.get("DatapointsToAlarm", periods), told.is_whole) == (periods, periods > 1)
    assert _breaches(alarm, told.rings)


def _stats(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics that an alarm is on, alone or in an expression, each with its period."""
    of_math = [each["MetricStat"] for each in alarm.get("Metrics", []) if "MetricStat" in each]
    return [{**each["Metric"], "Period": each["Period"]} for each in of_math] or [alarm]


def _breaches(alarm: dict[str, Any], values: Any) -> bool:
    if "Metrics" in alarm:
        assert alarm["Metrics"][0]["Expression"] == "100 * on_time / (on_time + delayed)"
        on_time, delayed = values[metrics.ON_TIME], values[metrics.DELAYED]
        assert alarm["ComparisonOperator"] == "LessThanThreshold"
        return bool(100 * on_time / (on_time + delayed) < alarm["Threshold"])
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    (value,) = values.values()
    return bool(value >= alarm["Threshold"])
