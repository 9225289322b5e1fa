"""What is read of the functions' logs, as moto keeps them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from botocore.stub import Stubber

from dueline.aws import cloudwatch
from dueline.aws.botocore_errors import map_caller_errors
from dueline.aws.cloudwatch import LogFigures
from dueline.config import metrics
from dueline.config.names import Names
from dueline.errors import Forbidden, Unavailable
from dueline.operations.observation import Series

# CloudWatch, and so moto, takes what is two weeks old at most.
NOW = datetime.now(UTC).replace(second=0, microsecond=0)
AN_HOUR = {"start": NOW - timedelta(hours=1), "end": NOW, "period": 60}
LATENESS = Series(queue="emails", metric=metrics.LATENESS, statistic="Maximum")
# Which one function alone logs.
TTL_OFF = Series(queue=None, metric=metrics.TTL_OFF, statistic="Maximum")
ON_TIME = Series(queue="emails", metric=metrics.ON_TIME, statistic="Sum")
NAMES = Names("dueline")


@pytest.fixture
def logs(session):
    client = session.client("logs")
    for function in ("api", "ingest", "planner", "tick", "watch"):
        client.create_log_group(logGroupName=NAMES.function_log(function))
        client.create_log_stream(logGroupName=NAMES.function_log(function), logStreamName="1")
    return client


def report(logs, function="tick", *, minutes_ago=5, text="", **figures):
    """Log figures as a function does; a queue's are of emails unless another one is named."""
    place = {"logGroupName": NAMES.function_log(function), "logStreamName": "1"}
    at = int((NOW - timedelta(minutes=minutes_ago)).timestamp() * 1000)
    message = text or json.dumps({"deployment": "dueline", "queue": "emails", **figures})
    logs.put_log_events(**place, logEvents=[{"timestamp": at, "message": message}])


def read(logs, *series):
    return LogFigures(NAMES, client=lambda: logs).read(series, **AN_HOUR)


def test_series_is_ordered_by_time(logs):
    report(logs, "planner", minutes_ago=3, Lateness=2.0)
    report(logs, Lateness=1.0, OnTime=3)
    report(logs, "ingest", Lateness=7.0, OnTime=4)
    report(logs, queue="invoices", Lateness=99.0)
    report(logs, minutes_ago=90, Lateness=99.0)
    report(logs, text="REPORT RequestId: 1")
    report(logs, text=json.dumps({"message": "stopped", "reason": "Lateness"}))
    first, second = NOW - timedelta(minutes=5), NOW - timedelta(minutes=3)
    assert read(logs, LATENESS, ON_TIME) == [[(first, 7.0), (second, 2.0)], [(first, 7.0)]]
    assert read(logs) == []


def test_dispatched_jobs_are_counted_at_the_api_too(logs):
    report(logs, "api", Dispatched=2, Submitted=2)
    report(logs, Dispatched=3)
    (points,) = read(logs, Series(queue="emails", metric=metrics.DISPATCHED, statistic="Sum"))
    assert [value for _, value in points] == [5.0]


def test_deployments_figure_is_the_watchs(logs):
    report(logs, "watch", text=json.dumps({"deployment": "dueline", "TtlOff": 1}))
    report(logs, "tick", text=json.dumps({"deployment": "dueline", "TtlOff": 9}))
    (points,) = read(logs, TTL_OFF)
    assert [value for _, value in points] == [1.0]


def test_jobs_on_time_are_summed_by_queue(logs):
    report(logs, OnTime=3, Delayed=1)
    report(logs, "ingest", OnTime=2)
    report(logs, "planner", queue="invoices", Delayed=4)
    span = {name: AN_HOUR[name] for name in ("start", "end")}
    assert LogFigures(NAMES, client=lambda: logs).on_time(**span) == {"emails": (5, 1), "invoices": (0, 4)}


def test_missing_log_is_not_an_empty_one(logs):
    logs.delete_log_group(logGroupName=NAMES.function_log("tick"))
    with pytest.raises(Unavailable, match="/aws/lambda/dueline-tick"):
        read(logs, LATENESS)


@pytest.fixture
def made_up(session):
    """A client of which a test makes up the answers."""
    with Stubber(session.client("logs")) as answering:
        yield answering


def test_longer_log_is_not_read_in_part(made_up, monkeypatch):
    """What is left out is not known: it could be all that was late."""
    monkeypatch.setattr(cloudwatch, "_MOST_PAGES", 2)
    for page in "12":
        made_up.add_response("filter_log_events", {"events": [], "nextToken": page})
    with pytest.raises(Unavailable, match="is too long"):
        read(made_up.client, TTL_OFF)


def test_denied_log_is_forbidden(made_up):
    made_up.add_client_error("filter_log_events", "AccessDeniedException")
    figures = LogFigures(NAMES, client=lambda: made_up.client, map_errors=map_caller_errors)
    with pytest.raises(Forbidden, match="reading the log"):
        figures.read([TTL_OFF], **AN_HOUR)
