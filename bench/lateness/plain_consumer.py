"""Plain SQS consumers, a thread a queue: `python -m bench.lateness.plain_consumer URL...`."""

import sys
import threading
import time
from typing import Any

import boto3

from bench.lateness.record import write

_LONG_POLL_SECONDS = 20


def consume(sqs: Any, url: str) -> None:
    """Receive ten at a time, write down when each is handled, and delete them together; for ever."""
    while True:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=_LONG_POLL_SECONDS)
        messages = answer.get("Messages", [])
        if messages:
            write([(int(each["Body"]), time.time()) for each in messages])
            entries: Any = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
            sqs.delete_message_batch(QueueUrl=url, Entries=entries)


if __name__ == "__main__":
    # Sessions are not for several threads at once, as clients are.
    sqs = boto3.client("sqs")
    for url in sys.argv[1:]:
        threading.Thread(target=consume, args=(sqs, url)).start()
