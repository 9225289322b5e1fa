"""Processes that consume and write down what landed: plain SQS consumers, Dueline's worker, Dynein's poller, Celery.

`python -m bench.consumers plain URL...`, `python -m bench.consumers dynein TABLE QUEUE=URL...`,
`dueline worker bench.consumers:worker`, and `celery -A bench.consumers worker`.
"""

import os
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import boto3

from bench.dynein import POLL, Dynein, dynein_on_aws
from bench.load import EXACT, land, write_landed
from dueline import ReceivedJob, Worker
from dueline.aws import clients
from dueline.core.job import Partition

worker = Worker("lateness")


@worker.job(EXACT, concurrency=64)
def exact(job: ReceivedJob) -> None:
    number: Any = job.payload
    land(number)


BROKER, LAND = "BENCH_BROKER", "bench.land"


def celery_at(broker: str) -> Any:
    """Return the Celery application of a broker, its settings the defaults.

    What is not acknowledged within the visibility timeout, an hour, is delivered again, which must exceed the furthest
    ETA: https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout
    """
    # Installed for `make bench` alone.
    from celery import Celery

    celery: Any = Celery("bench", broker=broker)
    celery.conf.update(broker_connection_retry_on_startup=True, task_ignore_result=True)
    return celery


if BROKER in os.environ:
    app = celery_at(os.environ[BROKER])
    app.task(land, name=LAND)


def consume(sqs: Any, url: str) -> None:
    """Receive ten at a time, write down when each is handled, and delete them together; for ever."""
    while True:
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=20).get("Messages", [])
        if messages:
            write_landed((int(each["Body"]), time.time()) for each in messages)
            entries = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
            sqs.delete_message_batch(QueueUrl=url, Entries=entries)


def poll(dynein: Dynein, queue: str) -> None:
    """Poll a partition for ever: at once where there may be more, else a second later."""
    while True:
        _, more = dynein.poll(Partition(queue=queue, number=0))
        if not more:
            time.sleep(POLL.total_seconds())


def main(kind: str, *arguments: str) -> None:
    # Sessions are not for several threads at once, as clients are.
    longest = timedelta(seconds=10)
    calls: list[tuple[Any, ...]]
    if kind == "plain":
        sqs = boto3.client("sqs")
        calls = [(consume, sqs, url) for url in arguments]
    else:
        table, *queues = arguments
        dynamodb, client = clients.client("dynamodb", longest=longest), clients.client("sqs", longest=longest)
        calls = [
            (poll, dynein_on_aws(dynamodb, client, table=table, inbound=url, queue=url), queue)
            for queue, _, url in (each.partition("=") for each in queues)
        ]
    threads = [threading.Thread(target=call, args=arguments) for call, *arguments in calls]
    for thread in threads:
        thread.start()
    # A pool takes no more once the main thread has ended.
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
