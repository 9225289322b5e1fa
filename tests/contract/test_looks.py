"""What the doctor sees where AWS's answers could pass for an all-clear."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.stub import Stubber

from dueline.aws.doctor import alarms, figures, functions, logs
from dueline.aws.doctor.place import Place
from dueline.config.names import Names
from dueline.doctor.seen import FUNCTIONS, Deployment
from dueline.errors import Unavailable

NOW = datetime(2026, 11, 23, 3, tzinfo=UTC)
DEPLOYMENT = Deployment(names=Names("shop"), lookahead=timedelta(seconds=240), queues=())


@pytest.fixture
def look():
    """Looks at a deployment of which a service answers so, call by call."""
    session = boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")

    def look(what, service, *answers):
        place = Place(deployment=DEPLOYMENT, session=session, queue_urls="", now=NOW)
        with Stubber(place.client(service)) as answering:
            for operation, answer in answers:
                answering.add_response(operation, answer)
            seen = what(place)
            answering.assert_no_pending_responses()
        return seen

    return look


def an_alarm(name, state, *, made, since, tells_silence=True):
    silence = {"InsufficientDataActions": ["arn:aws:sns:eu-west-1:123456789012:shop-alarms"]} if tells_silence else {}
    at = {"AlarmConfigurationUpdatedTimestamp": NOW - made, "StateUpdatedTimestamp": NOW - since}
    return {"AlarmName": name, "StateValue": state, "AlarmActions": ["arn"], **at, **silence}


def silent(look, *described):
    answers = ("describe_alarms", {"MetricAlarms": list(described)}), ("describe_alarms", {"MetricAlarms": []})
    return [each.name for each in look(alarms.alarms, "cloudwatch", *answers)["alarms"] if each.is_silent]


def test_an_alarm_that_tells_of_silence_is_seen_and_one_that_is_new_or_tells_none_is_not(look):
    a_week, a_while, no_data = timedelta(days=7), timedelta(minutes=20), "INSUFFICIENT_DATA"
    described = [
        an_alarm("fell-silent", no_data, made=a_week, since=a_while),
        an_alarm("never-reported", no_data, made=a_week, since=a_week),
        an_alarm("new", no_data, made=a_while, since=a_while),
        an_alarm("tells-none", no_data, made=a_week, since=a_while, tells_silence=False),
        an_alarm("well", "OK", made=a_week, since=a_while),
    ]
    assert silent(look, *described) == ["fell-silent", "never-reported"]


def test_where_no_alarm_was_ever_evaluated_as_in_a_local_aws_none_is_silent(look):
    day = timedelta(days=1)
    assert silent(look, an_alarm("ttl", "INSUFFICIENT_DATA", made=day, since=day)) == []


def test_stacks_that_never_stood_or_could_not_go_are_seen_as_well(look):
    states = {
        "shop-core": "UPDATE_COMPLETE",
        "shop-groups": "UPDATE_ROLLBACK_COMPLETE",
        "shop-queue-new": "ROLLBACK_COMPLETE",
        "shop-queue-old": "DELETE_FAILED",
        "shopping-core": "ROLLBACK_COMPLETE",
    }
    pages = [
        {"Stacks": [{"StackName": name, "StackStatus": state, "CreationTime": NOW}], "NextToken": name}
        for name, state in states.items()
    ]
    pages[-1].pop("NextToken")
    seen = look(functions.stacks, "cloudformation", *(("describe_stacks", page) for page in pages))
    assert seen == {"stacks": {name: state for name, state in states.items() if name != "shopping-core"}}


@pytest.mark.parametrize("code", ["InternalError", "Forbidden"])
def test_a_metric_that_cloudwatch_owes_is_no_metric_without_values(look, code):
    owed = {"MetricDataResults": [{"Id": "m0", "StatusCode": code, "Timestamps": [], "Values": []}]}
    with pytest.raises(Unavailable, match=f"did not tell a metric: {code}"):
        look(figures.figures, "cloudwatch", ("get_metric_data", owed))


def test_a_log_that_is_too_long_to_be_read_is_told_and_what_was_read_of_it_too(look, monkeypatch):
    monkeypatch.setattr(logs, "_MOST_PAGES", 2)
    line = '{"message": "refused", "reason": "AccessDenied"}'
    page = {"events": [{"message": line}], "nextToken": "more"}
    short = {"events": [], "nextToken": "more"}, {"events": []}
    answers = [("filter_log_events", each) for each in (page, page, *(len(FUNCTIONS) - 1) * short)]
    seen = look(logs.logs, "logs", *answers)
    assert [(each.message, each.count) for each in seen["logged"]] == [("refused", 2)]
    [left_out] = seen["partly"]
    assert (left_out.what, left_out.needs) == (f"all of the log of the function {FUNCTIONS[0]}", "")
