"""What goes wrong is reported."""

import re
from pathlib import Path
from typing import Any

from dueline.config import metrics
from infra.constructs.alarms import ticks_that_may_miss
from tests.template.synthesis import Assembly, Template

ROOT = Path(__file__).parents[2]
MOST_METRICS = 6


def _on_lateness(template: Template, statistic: str, *, minutes: int) -> dict[str, Any]:
    """Return the alarm on a statistic of the queue's lateness."""
    [alarm] = [
        one
        for one in template.of_type("AWS::CloudWatch::Alarm").values()
        if one.get("Namespace") == metrics.NAMESPACE and one["Statistic"] == statistic
    ]
    assert (alarm["MetricName"], alarm["Period"]) == (metrics.LATENESS, 60 * minutes)
    return alarm


def _rings_on_silence(alarm: dict[str, Any]) -> bool:
    """Whether it reports silence by the state in which each new alarm starts, and so rings in none."""
    return alarm["TreatMissingData"] == "missing" and alarm["InsufficientDataActions"] == alarm["AlarmActions"]


def test_no_alarm_rings_in_a_new_deployment(three: Assembly) -> None:
    for template in three.templates.values():
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
            assert alarm["TreatMissingData"] == "notBreaching" or _rings_on_silence(alarm)


def test_missing_ticks_grow_with_partitions(
    one_more: Assembly,
) -> None:
    alarms = [_on_lateness(one_more.queues[name], "SampleCount", minutes=5) for name in ("queue-0", "ahead")]
    assert [alarm["Threshold"] for alarm in alarms] == [5 * 4 - 2, 5 * 400 - 16]
    assert {alarm["ComparisonOperator"] for alarm in alarms} == {"LessThanThreshold"}
    assert ticks_that_may_miss(5 * 40) < 5


# Nothing is lost if somebody looks at them in the morning: by what their logical ids begin with.
TICKETS = {
    *("InboundDeadLetters", "DispatchDeadLetters", "PlannerDeadLetters", "TickDeadLetters", "DeadLetters"),
    *("InboundDeadLettersGrowing", "DispatchDeadLettersGrowing", "PlannerDeadLettersGrowing", "DeadLettersGrowing"),
    *(f"{name}Errors" for name in ("Ingest", "Tick", "Api", "Planner", "Ttl")),
    *("NeverTicked", "OnTime"),
}


def _topics(template: Template) -> dict[str, list[str]]:
    """Return where each alarm is sent, by its name in the code."""
    alarms = template.of_type("AWS::CloudWatch::Alarm")
    return {
        id.removeprefix("Alarms")[:-8]: [template.spelled(topic) for topic in alarm["AlarmActions"]]
        for id, alarm in alarms.items()
    }


def test_alarms_page_or_open_a_ticket(three: Assembly) -> None:
    for template in three.templates.values():
        for name, topics in _topics(template).items():
            assert topics == ["sns:dueline-tickets" if name in TICKETS else "sns:dueline-alarms"], name


def test_queue_owner_gets_its_alarms(neighbours: Assembly) -> None:
    theirs = "arn:aws:sns:eu-central-1:123456789012:pager"
    owned = {"emails": "sns:dueline_emails_alarms", "e": theirs}
    for queue, template in neighbours.queues.items():
        expected = [owned[queue]] if queue in owned else []
        assert {tuple(topics[1:]) for topics in _topics(template).values()} == {tuple(expected)}
    [mail] = neighbours.queues["emails"].of_type("AWS::SNS::Subscription").values()
    assert (mail["Protocol"], mail["Endpoint"]) == ("email", "mail-team@example.com")
    assert not neighbours.queues["e"].of_type("AWS::SNS::Topic")


def test_every_alarm_names_its_runbook(neighbours: Assembly) -> None:
    for template in neighbours.templates.values():
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
            assert alarm["OKActions"] == alarm["AlarmActions"]
            assert re.search(r"\. Runbook: docs/runbooks/[a-z-]+\.md$", alarm["AlarmDescription"])
            assert (ROOT / alarm["AlarmDescription"].rpartition(" ")[2]).exists()


def test_alarm_email_is_subscribed(three: Assembly, traced: Assembly) -> None:
    subscriptions = three.core.of_type("AWS::SNS::Subscription").values()
    assert [(each["Protocol"], each["Endpoint"]) for each in subscriptions] == [("email", "team@example.com")] * 2
    assert not traced.core.of_type("AWS::SNS::Subscription")


def test_each_runbook_has_an_alarm(three: Assembly) -> None:
    alarms = [
        one for template in three.templates.values() for one in template.of_type("AWS::CloudWatch::Alarm").values()
    ]
    named = [re.findall(r"Runbook: docs/runbooks/([a-z-]+)\.md$", alarm["AlarmDescription"]) for alarm in alarms]
    assert {len(each) for each in named} == {1}
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert {page for (page,) in named} == pages
    table = (ROOT / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| \[.*\]\(runbooks/([a-z-]+)\.md\) \|", table, re.MULTILINE)) == pages
