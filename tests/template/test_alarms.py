"""What goes wrong is told."""

from typing import Any

from dueline.config import metrics
from dueline.model.queue_settings import PLANNER
from tests.template.synthesis import Assembly, Template

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


def test_every_dead_letter_queue_rings_at_its_first_message(three: Assembly) -> None:
    ringing: set[str] = set()
    for template in three.templates.values():
        for queue, alarm in _alarms(template, "ApproximateNumberOfMessagesVisible").items():
            ringing.add(queue)
            assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
            assert (alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (1, "notBreaching")
    names = three.deployment.names
    core = {names.inbound_dlq, names.dispatch_dlq, names.tick_dlq, names.queue_dlq(PLANNER.name)}
    expected = core | {names.queue_dlq(queue) for queue in three.queues}
    assert ringing == {f"sqs:{queue}" for queue in expected}


def test_jobs_that_wait_five_minutes_for_ingest_ring(three: Assembly) -> None:
    [(queue, alarm)] = _alarms(three.core, "ApproximateAgeOfOldestMessage").items()
    assert queue == "sqs:dueline-inbound"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 300)


def test_every_function_that_fails_rings(three: Assembly) -> None:
    alarms = _alarms(three.core, "Errors")
    assert set(alarms) == {f"lambda:function:dueline-{name}" for name in ("ingest", "tick", "api", "planner")}
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
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (300, 2, "breaching")
    assert _dimensions(alarm) == {"deployment": "dueline"}
    assert _dimensions(_on(traced.core, metrics.WITHOUT_TICK)) == {"deployment": "quiet"}


def test_schedules_that_stand_still_ring_and_so_does_silence(three: Assembly) -> None:
    alarm = _on(three.core, metrics.STANDING_STILL)
    assert (alarm["Namespace"], alarm["Statistic"], alarm["Threshold"]) == (metrics.NAMESPACE, "Maximum", 1)
    # The watch looks every hour, not at the hour: of two hours it looks in each.
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (7200, 1, "breaching")
    assert _dimensions(alarm) == {"deployment": "dueline"}


def test_an_api_that_lambda_does_not_run_rings(three: Assembly) -> None:
    [(function, alarm)] = _alarms(three.core, "Throttles").items()
    assert (function, alarm["Statistic"], alarm["Threshold"]) == ("lambda:function:dueline-api", "Sum", 1)


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


def test_ten_minutes_without_a_partitions_ticks_ring_and_so_does_silence(three: Assembly) -> None:
    for template in three.queues.values():
        alarm = _on_lateness(template, "SampleCount", minutes=5)
        assert alarm["EvaluationPeriods"] == 2
        assert alarm["TreatMissingData"] == "breaching"


def test_a_queue_rings_when_over_one_in_a_thousand_of_its_jobs_are_late_in_an_hour_and_not_when_it_has_none(
    three: Assembly,
) -> None:
    for queue, template in three.queues.items():
        [alarm] = [one for one in template.of_type("AWS::CloudWatch::Alarm").values() if "Metrics" in one]
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 99.9)
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


def test_every_alarm_tells_the_topic_and_says_what_is_wrong(three: Assembly) -> None:
    for template in three.templates.values():
        for alarm in template.of_type("AWS::CloudWatch::Alarm").values():
            assert [template.spelled(action) for action in alarm["AlarmActions"]] == ["sns:dueline-alarms"]
            assert alarm["AlarmDescription"]


def test_the_topic_hears_cloudwatch_and_nobody_without_tls(three: Assembly) -> None:
    [policy] = three.core.of_type("AWS::SNS::TopicPolicy").values()
    statements = policy["PolicyDocument"]["Statement"]
    [denied] = [statement for statement in statements if statement["Effect"] == "Deny"]
    [allowed] = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "cloudwatch.amazonaws.com"}, "sns:Publish")
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_cloudwatch_can_publish_to_the_topic_for_it_has_no_key_of_sns(three: Assembly) -> None:
    [topic] = three.core.of_type("AWS::SNS::Topic").values()
    assert topic == {"TopicName": "dueline-alarms"}


def test_whoever_queues_yaml_names_gets_a_mail(three: Assembly, traced: Assembly) -> None:
    [subscription] = three.core.of_type("AWS::SNS::Subscription").values()
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "team@example.com")
    assert not traced.core.of_type("AWS::SNS::Subscription")


def test_a_queue_has_four_alarms_six_metrics_and_none_for_a_partition(one_more: Assembly) -> None:
    assert len(metrics.OF_A_QUEUE) <= MOST_METRICS
    for template in one_more.queues.values():
        assert len(template.of_type("AWS::CloudWatch::Alarm")) == 4
        assert not template.of_type("AWS::Logs::MetricFilter")
