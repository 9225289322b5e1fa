"""What CloudWatch tells of a deployment's metrics, as moto keeps them."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from moto import mock_aws

from dueline.aws.figures import CloudWatchFigures
from dueline.config import metrics
from dueline.errors import Forbidden
from dueline.operate.figures import Series

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


def test_each_series_is_of_its_queue_and_deployment_and_in_order_of_time(session):
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


def test_more_series_than_one_request_takes_are_read_in_several(session):
    report(session, metrics.LATENESS, 7.0, queue="q501")
    every = [Series(queue=f"q{number}", metric=metrics.LATENESS, statistic="Maximum") for number in range(502)]
    read = CloudWatchFigures("dueline", session=lambda: session).read(every, **AN_HOUR)
    assert [len(points) for points in read] == [*[0] * 501, 1]


def test_without_a_region_or_credentials_it_is_forbidden_with_the_reason(monkeypatch):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(Forbidden, match="reading metrics from CloudWatch: You must specify a region"):
        CloudWatchFigures("dueline", session=boto3.Session).read([LATENESS], **AN_HOUR)
