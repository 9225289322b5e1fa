"""What CloudWatch returns of a deployment's metrics, as moto keeps them."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from moto import mock_aws

from dueline.aws.cloudwatch import CloudWatchFigures
from dueline.config import metrics
from dueline.errors import Forbidden, Unavailable
from dueline.operations.observation import Series

# CloudWatch, and so moto, takes what is two weeks old at most.
NOW = datetime.now(UTC).replace(second=0, microsecond=0)
AN_HOUR = {"start": NOW - timedelta(hours=1), "end": NOW, "period": 60}
LATENESS = Series(queue="emails", metric=metrics.LATENESS, statistic="Maximum")
ON_TIME = Series(queue="emails", metric=metrics.ON_TIME, statistic="Sum")


@pytest.fixture
def session():
    with mock_aws():
        yield boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")


def report(session, name, *values, queue="emails", deployment="dueline", minutes_ago=5):
    """Put values of a metric as the functions report them."""
    dimensions = [{"Name": n, "Value": v} for n, v in metrics.dimensions(deployment, queue).items()]
    at = NOW - timedelta(minutes=minutes_ago)
    data = [{"MetricName": name, "Dimensions": dimensions, "Timestamp": at, "Value": value} for value in values]
    session.client("cloudwatch").put_metric_data(Namespace=metrics.NAMESPACE, MetricData=data)


def test_series_is_ordered_by_time(session):
    report(session, metrics.LATENESS, 2.0, minutes_ago=3)
    report(session, metrics.LATENESS, 1.0, 7.0)
    report(session, metrics.ON_TIME, 3.0, 4.0)
    report(session, metrics.LATENESS, 99.0, queue="invoices")
    report(session, metrics.LATENESS, 99.0, deployment="another")
    report(session, metrics.LATENESS, 99.0, minutes_ago=90)
    figures = CloudWatchFigures("dueline", session=lambda: session)
    first, second = NOW - timedelta(minutes=5), NOW - timedelta(minutes=3)
    assert figures.read([LATENESS, ON_TIME], **AN_HOUR) == [[(first, 7.0), (second, 2.0)], [(first, 7.0)]]
    assert figures.read([], **AN_HOUR) == []


def test_many_series_need_several_requests(session):
    report(session, metrics.LATENESS, 7.0, queue="q501")
    every = [Series(queue=f"q{number}", metric=metrics.LATENESS, statistic="Maximum") for number in range(502)]
    read = CloudWatchFigures("dueline", session=lambda: session).read(every, **AN_HOUR)
    assert [len(points) for points in read] == [*[0] * 501, 1]


@pytest.mark.parametrize("code", ["InternalError", "Forbidden"])
def test_withheld_metric_is_not_empty(session, code):
    """An answer of 200 may leave metrics out: those are not known, and nothing was not late for that."""
    owed = {"MetricDataResults": [{"Id": "m0", "StatusCode": code, "Timestamps": [], "Values": []}]}
    session.events.register("before-call.cloudwatch.GetMetricData", lambda **_: (AWSResponse("", 200, {}, None), owed))
    with pytest.raises(Unavailable, match=f"withheld a metric: {code}"):
        CloudWatchFigures("dueline", session=lambda: session).read([LATENESS], **AN_HOUR)


def test_missing_region_is_forbidden(monkeypatch):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(Forbidden, match="reading metrics from CloudWatch: You must specify a region"):
        CloudWatchFigures("dueline", session=boto3.Session).read([LATENESS], **AN_HOUR)
