"""One process that empties a queue: `python -m bench.workers.race way url jobs` tells in how many seconds."""

import subprocess
import sys
import threading
import time
from typing import Any

import boto3

from dueline import Client, NewJob, ReceivedJob, Worker
from local.template import ROOT
from tests.e2e.workers.stage import Stage

_BATCH = 10
_GONE: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


def race(stage: Stage, *, jobs: int) -> dict[str, float]:
    """Return how many jobs a second one process receives and acknowledges, by the way in which it does.

    `worker` is ours with an empty handler; `bare` is a loop that receives and deletes the same messages in batches with
    boto3, one after the other, and does nothing else.
    """
    return {way: _run(stage, way, jobs) for way in WAYS}


def _run(stage: Stage, way: str, jobs: int) -> float:
    command = [sys.executable, "-m", "bench.workers.race", way, stage.endpoints.queues["race"], str(jobs)]
    done = subprocess.run(command, cwd=ROOT, env=stage.environment(), capture_output=True, text=True, check=True)
    return jobs / float(done.stderr.splitlines()[-1])


def fill(jobs: int) -> None:
    Client.connect("shift", direct=True).schedule_many("race", [NewJob(payload={"number": n}) for n in range(jobs)])


def bare(url: str, jobs: int) -> float:
    """Receive and delete in batches, one request after the other."""
    sqs, done, begun = boto3.client("sqs"), 0, time.monotonic()
    while done < jobs:
        asked: dict[str, Any] = {"QueueUrl": url, "MaxNumberOfMessages": _BATCH, "MessageAttributeNames": ["All"]}
        messages = sqs.receive_message(WaitTimeSeconds=5, **asked).get("Messages", [])
        entries: Any = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
        if entries:
            sqs.delete_message_batch(QueueUrl=url, Entries=entries)
        done += len(entries)
    return time.monotonic() - begun


def worker(url: str, jobs: int) -> float:
    """Let a worker with an empty handler do it, until SQS says that nothing is left."""
    hands, times = Worker("shift"), list[float]()

    @hands.job("race")
    def nothing(job: ReceivedJob) -> None:
        times.append(time.monotonic())

    def end() -> None:
        while len(times) < jobs or _is_left(url):
            time.sleep(0.02)
        times.append(time.monotonic())
        hands.stop()

    threading.Thread(target=end, daemon=True).start()
    hands.run()
    return times[-1] - times[0]


def _is_left(url: str) -> bool:
    told: Any = boto3.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=_GONE)["Attributes"]
    return any(told[each] != "0" for each in _GONE)


WAYS = {"bare": bare, "worker": worker}

if __name__ == "__main__":
    way, queue_url, number = sys.argv[1:]
    fill(int(number))
    sys.stderr.write(f"{WAYS[way](queue_url, int(number))}\n")
