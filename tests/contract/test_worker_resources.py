"""Where a worker finds its queues, as moto keeps them."""

import json
import math
import threading

import boto3
import pytest
from moto import mock_aws

from dueline.aws.worker_resources import WorkerResources
from dueline.config.names import Names
from dueline.config.work import published
from dueline.model.work_settings import WorkSettings
from dueline.worker import worker
from tests.builders import a_queue
from tests.work import wait_until


@pytest.fixture
def session():
    with mock_aws():
        yield boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1")


def publish(session, **of_queue):
    told = published(WorkSettings(queue=a_queue(**of_queue), urls=("https://1",), dead_letters="https://dlq"))
    name = Names("shop").queue_parameter("emails")
    session.client("ssm").put_parameter(Name=name, Value=json.dumps(told), Type="String")


def test_a_place_tells_by_how_much_its_clock_may_be_behind_as_soon_as_it_is_found(session):
    publish(session)
    assert math.isfinite(WorkerResources("shop", session=session).connect("emails").behind())


def test_the_exact_clock_of_a_worker_ends_with_it(session):
    publish(session, precise=True)
    before = set(threading.enumerate())
    equipped = worker.connect("shop", session=session)
    equipped.connect("emails")
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["clock"]
    equipped.close()
    assert wait_until(lambda: set(threading.enumerate()) <= before)
