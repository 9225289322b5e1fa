"""Webhooks: each is delivered when it is due, no faster than the receiver likes, and again when it fails.

`dueline rate webhooks 20/s` limits all workers together, while they run.
"""

import json
import urllib.error
import urllib.request
from http import HTTPStatus

from dueline import Discard, ReceivedJob, Retry, Worker

worker = Worker()

_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


@worker.job("webhooks", concurrency=8)
def deliver(job: ReceivedJob) -> None:
    """POST an event to its receiver. Any other failure is tried again as the queue's retry policy says."""
    body = json.dumps(job.payload["event"]).encode()
    headers = {"content-type": "application/json", "idempotency-key": job.id}
    request = urllib.request.Request(job.payload["url"], data=body, headers=headers)
    try:
        urllib.request.urlopen(request, timeout=10).close()
    except urllib.error.HTTPError as answer:
        if answer.code in _LATER:
            raise Retry(float(answer.headers.get("retry-after", 30))) from None
        if answer.code < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Discard(f"the receiver answered {answer.code}") from None
        raise


if __name__ == "__main__":
    worker.run()
