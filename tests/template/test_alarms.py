"""What goes wrong is told."""

import re
from pathlib import Path
from typing import Any

from dueline.config import metrics
from dueline.model.queue_settings import PLANNER
from infra.constructs.missing_ticks import ticks_that_may_miss
from tests.template.synthesis import Assembly, Template

ROOT = Path(__file__).parents[2]
MOST_METRICS = 6


def _alarms(template: Template, metric: str) -> dict[str, dict[str, Any]]:
    """Return the alarms on one of AWS's metrics by the queue or function that it is of."""
    return {
        template.spelled(alarm["Dimensions"][0]["Value"]): alarm
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == metric
    }


def _on_lateness(template: Template, statistic: str, *, minutes: int) -> dict[str, Any]:
    """Return the alarm on a statistic of the queue's lateness."""
    [alarm] = [
        one
        for one in template.of_type("AWS::CloudWatch::Alarm").values()
        if one.get("Namespace") == metrics.NAMESPACE and one["Statistic"] == statistic
    ]
    assert (alarm["MetricName"], alarm["Period"]) == (metrics.LATENESS, 60 * minutes)
    return alarm


def _dimensions(alarm: dict[str, Any]) -> dict[str, str]:
    return {one["Name"]: one["Value"] for one in alarm["Dimensions"]}


def test_every_dead_letter_queue_that_somebody_must_empty_rings_at_its_first_message(three: Assembly) -> None:
    ringing: set[str] = set()
    for template in three.templates.values():
        for queue, alarm in _alarms(template, "ApproximateNumberOfMessagesVisible").items():
            ringing.add(queue)
            assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
            assert (alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (1, "notBreaching")
    names = three.deployment.names
    # That of the ticks has an alarm on what is sent to it.
    core = {names.inbound_dlq, names.dispatch_dlq, names.queue_dlq(PLANNER.name)}
    expected = core | {names.queue_dlq(queue) for queue in three.queues}
    assert ringing == {f"sqs:{queue}" for queue in expected}


def _on_growth(template: Template) -> dict[str, dict[str, Any]]:
    """Return the alarms on more dead letters by the queue that they are of."""
    on_math = [one for one in template.of_type("AWS::CloudWatch::Alarm").values() if "Metrics" in one]
    growing = [one for one in on_math if one["Metrics"][0]["Expression"].startswith("DIFF(")]
    return {template.spelled(_summed(one)["visible"]["Metric"]["Dimensions"][0]["Value"]): one for one in growing}


def _summed(alarm: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["Id"]: each["MetricStat"] for each in alarm["Metrics"][1:]}


def test_a_dead_letter_queue_that_holds_some_rings_again_when_there_are_more_and_not_when_people_look(
    three: Assembly,
) -> None:
    for template in three.templates.values():
        growing = _on_growth(template)
        assert set(growing) == set(_alarms(template, "ApproximateNumberOfMessagesVisible"))
        for queue, alarm in growing.items():
            growth, *_ = alarm["Metrics"]
            # Whoever receives messages to read them hides them for a while.
            assert growth["Expression"] == "DIFF(visible + hidden)"
            parts = _summed(alarm)
            assert {id: part["Metric"]["MetricName"] for id, part in parts.items()} == {
                "visible": "ApproximateNumberOfMessagesVisible",
                "hidden": "ApproximateNumberOfMessagesNotVisible",
            }
            assert {part["Period"] for part in parts.values()} == {60}
            assert {template.spelled(part["Metric"]["Dimensions"][0]["Value"]) for part in parts.values()} == {queue}
            assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
            assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (15, 1)


def test_jobs_that_wait_five_minutes_for_ingest_ring(three: Assembly) -> None:
    [(queue, alarm)] = _alarms(three.core, "ApproximateAgeOfOldestMessage").items()
    assert queue == "sqs:dueline-inbound"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 300)


def test_every_function_that_fails_rings(three: Assembly) -> None:
    alarms = _alarms(three.core, "Errors")
    assert set(alarms) == {f"lambda:function:dueline-{name}" for name in ("ingest", "tick", "api", "planner", "ttl")}
    assert {(alarm["Statistic"], alarm["Threshold"]) for alarm in alarms.values()} == {("Sum", 1)}


def _on(template: Template, metric: str) -> dict[str, Any]:
    """Return the one alarm on a metric."""
    [alarm] = [one for one in template.of_type("AWS::CloudWatch::Alarm").values() if one.get("MetricName") == metric]
    return alarm


def test_an_api_that_aws_fails_rings_and_by_what_it_counts_itself(three: Assembly) -> None:
    alarm = _on(three.core, metrics.API_FAULTS)
    assert (alarm["Namespace"], alarm["Statistic"], alarm["Threshold"]) == (metrics.NAMESPACE, "Sum", 1)
    assert _dimensions(alarm) == {"deployment": "dueline"}
    assert alarm["TreatMissingData"] == "notBreaching"
    # It answers 503 for what cannot be done yet, too.
    assert "5xx" not in {one.get("MetricName") for one in three.core.of_type("AWS::CloudWatch::Alarm").values()}


def test_partitions_without_a_tick_ring_from_the_core_and_so_does_silence(three: Assembly, traced: Assembly) -> None:
    alarm = _on(three.core, metrics.WITHOUT_TICK)
    assert (alarm["Namespace"], alarm["Statistic"], alarm["Threshold"]) == (metrics.NAMESPACE, "Maximum", 1)
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (300, 2)
    assert _tells_silence(alarm)
    assert _dimensions(alarm) == {"deployment": "dueline"}
    assert _dimensions(_on(traced.core, metrics.WITHOUT_TICK)) == {"deployment": "quiet"}


def test_partitions_that_never_ticked_ring_once_even_a_long_deployment_is_through(three: Assembly) -> None:
    alarm = _on(three.core, metrics.NEVER_TICKED)
    assert (alarm["Statistic"], alarm["Threshold"], alarm["TreatMissingData"]) == ("Maximum", 1, "notBreaching")
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 7200
    assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"]


def test_schedules_that_stand_still_ring_and_so_does_silence(three: Assembly) -> None:
    alarm = _on(three.core, metrics.STANDING_STILL)
    assert (alarm["Namespace"], alarm["Statistic"], alarm["Threshold"]) == (metrics.NAMESPACE, "Maximum", 1)
    # The watch looks every hour, not at the hour: of two hours it looks in each.
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (7200, 1)
    assert _tells_silence(alarm)
    assert _dimensions(alarm) == {"deployment": "dueline"}


def _tells_silence(alarm: dict[str, Any]) -> bool:
    """Whether it tells that its metric is silent by the state in which each new alarm begins, and so rings in none."""
    return alarm["TreatMissingData"] == "missing" and alarm["InsufficientDataActions"] == alarm["AlarmActions"]


def test_no_alarm_rings_in_a_new_deployment_where_no_metric_has_a_value_yet(three: Assembly) -> None:
    for template in three.templates.values():
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
            assert alarm["TreatMissingData"] == "notBreaching" or _tells_silence(alarm)


def test_a_firing_that_is_given_up_rings_and_nobody_has_to_purge_its_message(three: Assembly) -> None:
    alarm = _alarms(three.core, "NumberOfMessagesSent")["sqs:dueline-tick-dlq"]
    assert (alarm["Statistic"], alarm["Period"], alarm["Threshold"]) == ("Sum", 300, 1)


def test_ttl_that_is_off_rings_and_so_does_a_guard_that_does_not_look(three: Assembly) -> None:
    alarm = _on(three.core, metrics.TTL_OFF)
    assert (alarm["Namespace"], alarm["Statistic"], alarm["Threshold"]) == (metrics.NAMESPACE, "Maximum", 1)
    assert (alarm["Period"], alarm["EvaluationPeriods"], _tells_silence(alarm)) == (1800, 1, True)
    assert _dimensions(alarm) == {"deployment": "dueline"}


def test_the_guard_of_ttl_is_fired_by_another_service_than_the_ticks(three: Assembly) -> None:
    [rule] = three.core.of_type("AWS::Events::Rule").values()
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(10 minutes)", "ENABLED")
    [target] = rule["Targets"]
    assert three.core.spelled(target["Arn"]) == "lambda:function:dueline-ttl:live"


def test_an_api_and_ticks_that_lambda_does_not_run_ring(three: Assembly) -> None:
    alarms = _alarms(three.core, "Throttles")
    assert set(alarms) == {"lambda:function:dueline-api", "lambda:function:dueline-tick"}
    assert {(alarm["Statistic"], alarm["Threshold"]) for alarm in alarms.values()} == {("Sum", 1)}


def test_a_queue_rings_when_its_jobs_are_a_minute_late(three: Assembly) -> None:
    for queue, template in three.queues.items():
        alarm = _on_lateness(template, "Maximum", minutes=1)
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 60)
        assert _dimensions(alarm) == {"deployment": "dueline", "queue": queue}


def test_a_queue_rings_when_fewer_ticks_end_than_it_has_partitions(three: Assembly) -> None:
    for queue, template in three.queues.items():
        alarm = _on_lateness(template, "SampleCount", minutes=5)
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 5 * 4 - 2)
        assert _dimensions(alarm) == {"deployment": "dueline", "queue": queue}


def test_the_more_partitions_the_more_ticks_may_be_counted_elsewhere_and_few_enough_that_one_of_40_is_missed(
    one_more: Assembly,
) -> None:
    assert _on_lateness(one_more.queues["ahead"], "SampleCount", minutes=5)["Threshold"] == 5 * 400 - 16
    assert ticks_that_may_miss(5 * 40) < 5


def test_ten_minutes_without_a_partitions_ticks_ring_and_so_does_silence(three: Assembly) -> None:
    for template in three.queues.values():
        alarm = _on_lateness(template, "SampleCount", minutes=5)
        assert alarm["EvaluationPeriods"] == 2
        assert _tells_silence(alarm)


def test_a_queue_rings_when_over_one_in_a_thousand_of_its_jobs_are_late_in_an_hour_and_not_when_it_has_none(
    three: Assembly,
) -> None:
    for queue, template in three.queues.items():
        [alarm] = [one for one in template.of_type("AWS::CloudWatch::Alarm").values() if one.get("Threshold") == 99.9]
        assert alarm["ComparisonOperator"] == "LessThanThreshold"
        assert (alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (1, "notBreaching")
        share, *told = alarm["Metrics"]
        assert share["Expression"] == "100 * on_time / (on_time + delayed)"
        of = {each["Id"]: each["MetricStat"] for each in told}
        assert {id: each["Metric"]["MetricName"] for id, each in of.items()} == {
            "on_time": metrics.ON_TIME,
            "delayed": metrics.DELAYED,
        }
        for each in of.values():
            assert (each["Period"], each["Stat"], each["Metric"]["Namespace"]) == (3600, "Sum", metrics.NAMESPACE)
            assert _dimensions(each["Metric"]) == {"deployment": "dueline", "queue": queue}


# Nothing is lost if somebody looks at them in the morning: by what their logical ids begin with.
TICKETS = {
    *("InboundDeadLetters", "DispatchDeadLetters", "PlannerDeadLetters", "TickDeadLetters", "DeadLetters"),
    *("InboundDeadLettersGrowing", "DispatchDeadLettersGrowing", "PlannerDeadLettersGrowing", "DeadLettersGrowing"),
    *(f"{name}Errors" for name in ("Ingest", "Tick", "Api", "Planner", "Ttl")),
    *("NeverTicked", "OnTime"),
}


def _topics(template: Template) -> dict[str, list[str]]:
    """Return where each alarm is told, by its name in the code."""
    alarms = template.of_type("AWS::CloudWatch::Alarm")
    return {
        id.removeprefix("Alarms")[:-8]: [template.spelled(topic) for topic in alarm["AlarmActions"]]
        for id, alarm in alarms.items()
    }


def test_what_costs_jobs_their_time_wakes_somebody_and_the_rest_is_a_ticket(three: Assembly) -> None:
    for template in three.templates.values():
        for name, topics in _topics(template).items():
            assert topics == ["sns:dueline-tickets" if name in TICKETS else "sns:dueline-alarms"], name


def test_the_owner_of_a_queue_is_told_of_its_alarms_too_by_mail_or_at_a_topic_of_theirs(neighbours: Assembly) -> None:
    theirs = "arn:aws:sns:eu-central-1:123456789012:pager"
    owned = {"emails": "sns:dueline_emails_alarms", "e": theirs}
    for queue, template in neighbours.queues.items():
        expected = [owned[queue]] if queue in owned else []
        assert {tuple(topics[1:]) for topics in _topics(template).values()} == {tuple(expected)}
    [mail] = neighbours.queues["emails"].of_type("AWS::SNS::Subscription").values()
    assert (mail["Protocol"], mail["Endpoint"]) == ("email", "mail-team@example.com")
    assert not neighbours.queues["e"].of_type("AWS::SNS::Topic")


def test_every_alarm_is_told_when_it_begins_and_when_it_is_over_and_says_what_is_wrong(neighbours: Assembly) -> None:
    for template in neighbours.templates.values():
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
            assert alarm["OKActions"] == alarm["AlarmActions"]
            assert re.search(r"\. Runbook: docs/runbooks/[a-z-]+\.md$", alarm["AlarmDescription"])
            assert (ROOT / alarm["AlarmDescription"].rpartition(" ")[2]).exists()


def test_the_topic_hears_cloudwatch_and_nobody_without_tls(three: Assembly) -> None:
    first, second = three.core.of_type("AWS::SNS::TopicPolicy").values()
    actions = [[each["Action"] for each in policy["PolicyDocument"]["Statement"]] for policy in (first, second)]
    assert actions[0] == actions[1]
    statements = first["PolicyDocument"]["Statement"]
    [denied] = [statement for statement in statements if statement["Effect"] == "Deny"]
    [allowed] = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "cloudwatch.amazonaws.com"}, "sns:Publish")
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_cloudwatch_can_publish_to_the_topic_for_it_has_no_key_of_sns(three: Assembly) -> None:
    topics = three.core.of_type("AWS::SNS::Topic").values()
    assert list(topics) == [{"TopicName": "dueline-alarms"}, {"TopicName": "dueline-tickets"}]


def test_whoever_queues_yaml_names_gets_a_mail(three: Assembly, traced: Assembly) -> None:
    subscriptions = three.core.of_type("AWS::SNS::Subscription").values()
    assert [(each["Protocol"], each["Endpoint"]) for each in subscriptions] == [("email", "team@example.com")] * 2
    assert not traced.core.of_type("AWS::SNS::Subscription")


def test_a_queue_has_five_alarms_six_metrics_and_none_for_a_partition(one_more: Assembly) -> None:
    assert len(metrics.OF_A_QUEUE) <= MOST_METRICS
    for template in one_more.queues.values():
        assert len(template.of_type("AWS::CloudWatch::Alarm")) == 5
        assert not template.of_type("AWS::Logs::MetricFilter")


def test_each_alarm_names_its_runbook_and_each_runbook_is_of_an_alarm(three: Assembly) -> None:
    alarms = [
        one for template in three.templates.values() for one in template.of_type("AWS::CloudWatch::Alarm").values()
    ]
    named = [re.findall(r"Runbook: docs/runbooks/([a-z-]+)\.md$", alarm["AlarmDescription"]) for alarm in alarms]
    assert {len(each) for each in named} == {1}
    pages = {page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert {page for (page,) in named} == pages
    table = (ROOT / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| \[.*\]\(runbooks/([a-z-]+)\.md\) \|", table, re.MULTILINE)) == pages
