"""What the doctor sees where AWS's answers could pass for an all-clear."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner

from dueline.aws import clients, cloudwatch, inspection
from dueline.aws.deployment_context import DeploymentContext
from dueline.cli import connect
from dueline.cli.app import app
from dueline.config.names import Names
from dueline.errors import Forbidden
from dueline.operations.observation import FUNCTIONS, ObservedDeployment, QueueDepth

NOW = datetime(2026, 11, 23, 3, tzinfo=UTC)
QUEUE_URLS = "https://sqs.eu-west-1.amazonaws.com/123456789012/"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:shop-alarms"
DEPLOYMENT = ObservedDeployment(names=Names("shop"), queues=())


@pytest.fixture
def look(session):
    """Looks at a deployment of which a service answers so, call by call; a string is the code of an error."""

    def look(what, service, *answers):
        place = DeploymentContext(deployment=DEPLOYMENT, session=session, queue_urls=QUEUE_URLS, now=NOW)
        with Stubber(place.client(service)) as answering:
            for operation, answer, *parameters in answers:
                if isinstance(answer, str):
                    answering.add_client_error(operation, answer)
                else:
                    answering.add_response(operation, answer, *parameters)
            observed = what(place)
            answering.assert_no_pending_responses()
        return observed

    return look


@pytest.mark.parametrize("content", [{"AlarmActions": []}, {"ActionsEnabled": False}])
def test_alarm_without_actions_notifies_nobody(look, content):
    well = {"AlarmName": "well", "StateValue": "OK", "AlarmActions": ["arn"]}
    answers = {"MetricAlarms": [well, {**well, "AlarmName": "mute", **content}]}, {"MetricAlarms": []}
    observed = look(inspection.alarms, "cloudwatch", *(("describe_alarms", answer) for answer in answers))
    assert [(each.name, each.notifies) for each in observed["alarms"]] == [("well", True), ("mute", False)]


def test_unconfirmed_subscription_is_not_counted(look, monkeypatch):
    monkeypatch.setattr(inspection, "_described", lambda _: [])
    confirmed, *others = f"{TOPIC}:0a1b", "PendingConfirmation", "Deleted"

    def heard(*arns):
        content = {"Subscriptions": [{"SubscriptionArn": arn} for arn in arns]}
        answers = 2 * [("list_subscriptions_by_topic", content)]
        return look(inspection.subscribers, "sns", *answers)["subscribers"]

    assert heard(*others) == {"shop-alarms": 0, "shop-tickets": 0}
    assert heard(confirmed, *others) == {"shop-alarms": 1, "shop-tickets": 1}


THREE_WAIT = {
    "Attributes": {
        "ApproximateNumberOfMessages": "3",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "MessageRetentionPeriod": "345600",
    }
}


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
def test_missing_queue_is_not_an_empty_one(look, code):
    first, *rest = DEPLOYMENT.sqs_queues()
    answers = [code, *(THREE_WAIT for _ in rest)]
    observed = look(inspection.depths, "sqs", *(("get_queue_attributes", answer) for answer in answers))["depths"]
    assert observed == {first: None} | dict.fromkeys(rest, QueueDepth(waiting=3, retention=timedelta(days=4)))


def test_removed_queue_is_reported(look):
    own = DEPLOYMENT.sqs_queues()
    pages = [f"{QUEUE_URLS}{name}" for name in own if name.startswith("shop_")], [f"{QUEUE_URLS}shop_old_p2"]
    first, second = ({"QueueUrls": urls} for urls in pages)
    # Without a number SQS gives no token, however many there are.
    parameters = {"QueueNamePrefix": "shop_", "MaxResults": 1000}
    listings = (
        ("list_queues", first | {"NextToken": "more"}, parameters),
        ("list_queues", second, {**parameters, "NextToken": "more"}),
    )
    observed = look(inspection.left, "sqs", *listings, ("get_queue_attributes", THREE_WAIT))
    assert observed == {"left": {"shop_old_p2": QueueDepth(waiting=3, retention=timedelta(days=4))}}


def test_schedules_are_none_without_their_group(look):
    watches = {"Schedules": [{"Name": "shop", "State": "ENABLED"}]}
    answers = (("list_schedules", answer) for answer in ("ResourceNotFoundException", watches))
    assert look(inspection.schedules, "scheduler", *answers) == {"schedules": {}, "watches": {"shop": "ENABLED"}}


def test_refused_look_says_what_it_was_at(look):
    with pytest.raises(Forbidden, match="looking at the schedules of ticks and watches"):
        look(lambda place: inspection.all_checks(place)[0].look(), "scheduler", ("list_schedules", "AccessDenied"))


SETTINGS = json.dumps({"lookahead": 240, "queue_urls": QUEUE_URLS})


@pytest.fixture
def publish(session, monkeypatch):
    """Publishes parameters of the deployment."""
    ssm = session.client("ssm")
    monkeypatch.setattr(connect, "session", lambda _: session)
    monkeypatch.setattr(clients, "client", lambda *_, **__: ssm)

    def publish(parameters, **more):
        stored = [{"Name": f"/dueline/shop/{name}", "Value": value} for name, value in parameters.items()]
        answering.add_response("get_parameters_by_path", {"Parameters": stored, **more})

    with Stubber(ssm) as answering:
        yield publish


@pytest.mark.parametrize("skew", [timedelta(hours=-2), timedelta(hours=2)])
def test_doctor_goes_by_the_clock_of_aws(publish, skew):
    headers = {"date": "Mon, 23 Nov 2026 03:00:00 GMT"}
    publish({"settings": SETTINGS}, ResponseMetadata={"HTTPStatusCode": 200, "HTTPHeaders": headers})
    _, observed = connect.doctor(connect.Target(name="shop"), now=NOW + skew)
    # Else what was measured within the second would be left out.
    assert observed().now == NOW + timedelta(seconds=1)


@pytest.mark.parametrize(("values", "age"), [([], None), ([0.0], 0.0), ([90.0], 90.0)])
def test_age_without_data_is_unknown_and_not_0(look, values, age):
    results = [{"Id": "m1", "Timestamps": [NOW] * len(values), "Values": values, "StatusCode": "Complete"}]
    observed = look(cloudwatch.figures, "cloudwatch", ("get_metric_data", {"MetricDataResults": results}))
    assert observed["figures"].get(("shop-inbound", "age")) == age


def test_partly_read_log_is_reported(look, monkeypatch):
    monkeypatch.setattr(cloudwatch, "_MOST_PAGES", 2)
    line = '{"message": "refused", "reason": "AccessDenied"}'
    page = {"events": [{"message": line, "timestamp": 1}], "nextToken": "more"}
    short = {"events": [], "nextToken": "more"}, {"events": []}
    answers = [("filter_log_events", each) for each in (page, page, *(len(FUNCTIONS) - 1) * short)]
    observed = look(inspection.logs, "logs", *answers)
    assert [(each.message, each.count) for each in observed["logged"]] == [("refused", 2)]
    [left_out] = observed["partly"]
    assert (left_out.what, left_out.needs) == (f"all of the log of the function {FUNCTIONS[0]}", "")


@pytest.mark.parametrize(
    ("parameters", "broken"),
    [
        ({"settings": "{}"}, "settings cannot be read"),
        ({"settings": "{"}, "settings cannot be read"),
        ({"settings": SETTINGS, "queues/emails": "{}"}, "queues/emails cannot be read"),
        ({"queues/emails": "{}"}, "settings is gone"),
    ],
)
def test_doctor_reports_unreadable_parameters(publish, parameters, broken):
    publish(parameters)
    done = CliRunner().invoke(app, ["--name", "shop", "doctor"])
    assert done.exit_code == 6, done.output
    assert f"parameter /dueline/shop/{broken}" in done.stderr
