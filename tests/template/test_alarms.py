"""What goes wrong is reported."""

import re
from pathlib import Path
from typing import Any

from infra.constructs.alarms import ticks_that_may_miss
from tests.template.synthesis import Assembly

ROOT = Path(__file__).parents[2]


def _rings_on_silence(alarm: dict[str, Any]) -> bool:
    """Whether it reports silence by the state in which each new alarm starts, and so rings in none."""
    return alarm["TreatMissingData"] == "missing" and alarm["InsufficientDataActions"] == alarm["AlarmActions"]


def test_no_alarm_rings_in_a_new_deployment(three: Assembly) -> None:
    for template in three.templates.values():
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
            assert alarm["TreatMissingData"] == "notBreaching" or _rings_on_silence(alarm)


def test_missing_ticks_grow_with_partitions(one_more: Assembly) -> None:
    alarms = [one_more.queues[name].of_type("AWS::CloudWatch::Alarm").values() for name in ("queue-0", "ahead")]
    of_ticks = [one for each in alarms for one in each if one.get("Statistic") == "SampleCount"]
    assert [alarm["Threshold"] for alarm in of_ticks] == [5 * 4 - 2, 5 * 400 - 16]
    assert ticks_that_may_miss(5 * 40) < 5


def test_queue_owner_gets_its_alarms(neighbours: Assembly) -> None:
    theirs = "arn:aws:sns:eu-central-1:123456789012:pager"
    owned = {"emails": ["sns:dueline_emails_alarms"], "e": [theirs]}
    for queue, template in neighbours.queues.items():
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
            assert [template.spelled(topic) for topic in alarm["AlarmActions"][1:]] == owned.get(queue, [])
    [mail] = neighbours.queues["emails"].of_type("AWS::SNS::Subscription").values()
    assert (mail["Protocol"], mail["Endpoint"]) == ("email", "mail-team@example.com")
    assert not neighbours.queues["e"].of_type("AWS::SNS::Topic")


def test_alarm_email_is_subscribed(three: Assembly, traced: Assembly) -> None:
    subscriptions = three.core.of_type("AWS::SNS::Subscription").values()
    assert [(each["Protocol"], each["Endpoint"]) for each in subscriptions] == [("email", "team@example.com")] * 2
    assert not traced.core.of_type("AWS::SNS::Subscription")


def test_each_runbook_has_an_alarm(neighbours: Assembly) -> None:
    templates = neighbours.templates.values()
    alarms = [one for template in templates for one in template.of_type("AWS::CloudWatch::Alarm").values()]
    named = [re.findall(r"\. Runbook: docs/runbooks/([a-z-]+)\.md$", alarm["AlarmDescription"]) for alarm in alarms]
    assert {len(each) for each in named} == {1}
    assert all(alarm["OKActions"] == alarm["AlarmActions"] for alarm in alarms)
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert {page for (page,) in named} == pages
    table = (ROOT / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| \[.*\]\(runbooks/([a-z-]+)\.md\) \|", table, re.MULTILINE)) == pages
