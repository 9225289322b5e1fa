"""What a deployment publishes of its queues, as moto keeps it in SSM."""

import json

import boto3
import pytest
from moto import mock_aws

from dueline.aws.published import Published
from dueline.config.names import Names
from dueline.config.work import published
from dueline.errors import QueueNotFound
from dueline.memory import VirtualClock
from dueline.working.settings import WorkSettings
from tests.builders import NOW, a_queue

NAMES = Names("direct")
WORK = WorkSettings(queue=a_queue(track=True), urls=("https://1",), dead_letters="https://dlq", max_receives=7)


@pytest.fixture
def ssm():
    with mock_aws():
        yield boto3.Session("AKIDEXAMPLE", "s", region_name="eu-west-1").client("ssm")


@pytest.fixture
def deployment(ssm):
    return Published(ssm, NAMES, clock=VirtualClock(NOW))


def publish(ssm, told, name="emails"):
    ssm.put_parameter(Name=NAMES.queue_parameter(name), Value=json.dumps(told), Type="String", Overwrite=True)


def test_workers_find_what_they_need_of_their_queue(ssm, deployment):
    publish(ssm, published(WORK))
    assert deployment.work("emails") == WORK
    assert deployment.queue("emails") == WORK.queue
    assert deployment.queues() == [WORK.queue]


def test_workers_read_what_is_published_now(ssm, deployment):
    publish(ssm, published(WORK))
    deployment.work("emails")
    publish(ssm, {**published(WORK), "urls": ["https://1", "https://2"]})
    assert deployment.work("emails").urls == ("https://1", "https://2")


@pytest.mark.parametrize("name", ["nobody", "no/queue", ""])
def test_a_queue_that_is_not_there_is_not_found(deployment, name):
    with pytest.raises(QueueNotFound, match="no queue"):
        deployment.work(name)


def test_clients_read_a_queue_of_an_older_stack_and_its_workers_are_told_to_deploy_it(ssm, deployment):
    told = published(WORK)
    del told["work"], told["track"]
    publish(ssm, told)
    assert deployment.queue("emails") == a_queue()
    with pytest.raises(QueueNotFound, match="deploy it"):
        deployment.work("emails")
