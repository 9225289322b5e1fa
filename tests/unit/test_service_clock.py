"""The time as a service's answers tell it, over real sockets."""

import time
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.config import Config

from dueline.aws.service_clock import ServiceClock
from tests.gate import DROPPED, open_gate, told


@pytest.fixture
def gate():
    with open_gate() as opened:
        opened.api = lambda _: told({})
        yield opened


@pytest.fixture
def sqs(gate):
    keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "s", "region_name": "eu-west-1"}
    return boto3.client("sqs", endpoint_url=gate.url, config=Config(retries={"total_max_attempts": 1}), **keys)


@pytest.mark.parametrize("ahead", [-86_400, -2.5, 0, 2.5, 86_400])
def test_a_clock_that_is_wrong_is_put_right_by_the_first_answer_and_never_goes_ahead(sqs, ahead):
    clock = ServiceClock(lambda: time.time() + ahead)
    clock.listen_to(sqs)
    sqs.list_queues()
    behind = datetime.now(UTC) - clock.now()
    assert timedelta() <= behind < timedelta(seconds=1.5)


def test_before_any_answer_and_after_one_that_was_lost_the_local_time_counts(sqs, gate):
    clock = ServiceClock(lambda: time.time() + 500)
    clock.listen_to(sqs)
    gate.api = lambda _: DROPPED
    with pytest.raises(Exception, match="Connection was closed"):
        sqs.list_queues()
    assert gate.asked
    assert timedelta(seconds=499) < clock.now() - datetime.now(UTC) <= timedelta(seconds=500)
