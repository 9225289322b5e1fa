"""SQS alone: messages sent straight to the emulator's SQS, to the same plain consumers, without Dueline."""

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

from bench.harness import Progress, chunks, python, running
from bench.load import QUEUES, Due, Load, Schedule, wait_for_the_last
from dueline.aws.sqs import SqsQueue
from dueline.core.message import BATCH_MESSAGES, Message
from dueline.core.request import delay_seconds


def sqs_lateness(sqs: Any, load: Load, progress: Progress, *, record: Path, environment: dict[str, str]) -> Any:
    """Send the flow job by job at its instant, without a delay, and the rush in tens, each with SQS's own timer."""
    urls = {name: sqs.create_queue(QueueName=f"floor-{name}")["QueueUrl"] for name in QUEUES}
    queues = {name: SqsQueue(sqs, url) for name, url in urls.items()}
    command = python("bench.consumers", "plain", *urls.values())
    with running(command, log=record.with_suffix(".log"), environment=environment):
        dues = load.dues()
        schedule = Schedule(begin=math.ceil(time.time() + 3), jobs=dues)
        _send_rush(schedule, queues)
        for due in sorted((due for due in dues if not due.rush), key=attrgetter("after")):
            time.sleep(max(0.0, schedule.begin + due.after - time.time()))
            queues[due.queue].send([Message(body=str(due.number))])
        return wait_for_the_last("SQS alone", progress, schedule=schedule, record=record).by_kind(dues)


def _send_rush(schedule: Schedule, queues: dict[str, SqsQueue]) -> None:
    def send(batch: Sequence[Due]) -> None:
        delay = delay_seconds(schedule.due(batch[0]), now=datetime.now(UTC))
        queues[batch[0].queue].send([Message(body=str(due.number), delay=delay) for due in batch])

    rush = [[due for due in schedule.jobs if due.rush and due.queue == name] for name in queues]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, (batch for dues in rush for batch in chunks(dues, BATCH_MESSAGES))))
