"""What the emulator takes by itself: messages sent straight to SQS, to the same plain consumers, without Dueline."""

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from operator import attrgetter

from bench.dynein import cut
from bench.lateness.books import Run
from bench.lateness.plan import LANES, Load, Scheduled, Wish
from bench.lateness.stage import Stage
from bench.lateness.waiting import wait_for_the_last
from bench.part import Progress
from bench.processes import python, running
from dueline.aws.sqs.queue import SqsQueue
from dueline.model.message import BATCH_MESSAGES, Message
from dueline.model.routing import delay_seconds

_BEGIN_SECONDS = 3
_SENDERS = 4


def measure(stage: Stage, load: Load, progress: Progress) -> Run:
    """Send the flow job by job at its instant, without a delay, and the rush in tens, each with SQS's own timer."""
    written = stage.folder / "floor"
    sqs = stage.emulator.client("sqs")
    queues = {lane: stage.queue(sqs.create_queue(QueueName=f"floor-{lane}")["QueueUrl"]) for lane in LANES}
    urls = [sqs.get_queue_url(QueueName=f"floor-{lane}")["QueueUrl"] for lane in LANES]
    command = python("bench.lateness.plain_consumer", *urls)
    with running(command, log=stage.folder / "floor.log", environment=stage.environment(written)):
        wishes = tuple(load.wishes())
        scheduled = Scheduled(begin=math.ceil(time.time() + _BEGIN_SECONDS), wishes=wishes)
        progress("the emulator alone: schedule", 0, 1)
        _send_rush(scheduled, queues)
        _send_flow(scheduled, queues)
        wait_for_the_last("the emulator alone: jobs land", progress, scheduled=scheduled, written=written)
    return Run.read(scheduled, written)


def _send_rush(scheduled: Scheduled, queues: dict[str, SqsQueue]) -> None:
    by_lane = sorted((wish for wish in scheduled.wishes if wish.rush), key=attrgetter("lane"))
    batches = [batch for _, lane in groupby(by_lane, attrgetter("lane")) for batch in cut(list(lane), BATCH_MESSAGES)]
    with ThreadPoolExecutor(_SENDERS) as pool:
        list(pool.map(lambda batch: _send(batch, scheduled, queues[batch[0].lane]), batches))


def _send(batch: Sequence[Wish], scheduled: Scheduled, queue: SqsQueue) -> None:
    delay = delay_seconds(scheduled.due(batch[0]), now=scheduled.now())
    queue.send([Message(body=str(wish.number), delay=delay) for wish in batch])


def _send_flow(scheduled: Scheduled, queues: dict[str, SqsQueue]) -> None:
    for wish in sorted((wish for wish in scheduled.wishes if not wish.rush), key=attrgetter("after")):
        time.sleep(max(0.0, scheduled.begin + wish.after - time.time()))
        queues[wish.lane].send([Message(body=str(wish.number))])
