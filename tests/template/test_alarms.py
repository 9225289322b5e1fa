"""What goes wrong is reported: by alarms on the deployment, and by the watch."""

import re

from dueline.operations.watch import KINDS
from tests.template.synthesis import ROOT


def _alarms(template):
    return list(template.of_type("AWS::CloudWatch::Alarm").values())


def _rings_on_silence(alarm):
    """Whether it reports silence by the state in which each new alarm starts, and so rings in none."""
    return alarm["TreatMissingData"] == "missing" and alarm["InsufficientDataActions"] == alarm["AlarmActions"]


def test_no_alarm_rings_in_a_new_deployment(strict):
    alarms = [alarm for template in strict.templates.values() for alarm in _alarms(template)]
    silent = [alarm for alarm in alarms if alarm["TreatMissingData"] != "notBreaching"]
    assert [alarm["MetricName"] for alarm in silent if _rings_on_silence(alarm)] == ["WorstLateness"]
    assert len(silent) == 1


def test_no_alarm_rings_for_one_event(strict):
    for alarm in _alarms(strict.core):
        is_share = "Metrics" in alarm and alarm["DatapointsToAlarm"] >= 2
        is_age_or_silence = alarm.get("Statistic") == "Maximum"
        assert is_share or is_age_or_silence or alarm["Threshold"] > 1, alarm


def test_each_runbook_has_an_alarm_or_a_mail(strict, neighbours):
    alarms = [alarm for template in strict.templates.values() for alarm in _alarms(template)]
    link = r"\. Runbook: https://wiki\.example\.com/runbooks/([a-z-]+)\.md$"
    named = [re.findall(link, alarm["AlarmDescription"]) for alarm in alarms]
    assert {len(each) for each in named} == {1}
    assert " Runbook: docs/runbooks/" in _alarms(neighbours.core)[0]["AlarmDescription"]
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert {page for (page,) in named} | {kind.page for kind in KINDS.values()} == pages
    table = (ROOT / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| \[.*\]\(runbooks/([a-z-]+)\.md\) \|", table, re.MULTILINE)) == pages
