"""Where a worker finds its queues, as moto keeps them."""

import json
import math
import threading

from dueline.aws.worker_deployment import WorkerDeployment
from dueline.config.names import Names
from dueline.config.registry import published
from dueline.core.queue_settings import WorkSettings
from dueline.worker import worker
from tests.builders import a_queue
from tests.waiting import wait_until


def publish(session, **of_queue):
    settings = published(WorkSettings(queue=a_queue(**of_queue), urls=("https://1",), dead_letters="https://dlq"))
    name = Names("shop").queue_parameter("emails")
    session.client("ssm").put_parameter(Name=name, Value=json.dumps(settings), Type="String")


def test_connecting_a_queue_syncs_the_clock(session):
    publish(session)
    assert math.isfinite(WorkerDeployment("shop", session=session).connect("emails", report=print).behind())


def test_exact_clock_ends_with_its_worker(session):
    publish(session, precise=True)
    before = set(threading.enumerate())
    equipped = worker.connect("shop", session=session)
    equipped.connect("emails")
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["clock"]
    equipped.close()
    assert wait_until(lambda: set(threading.enumerate()) <= before)
