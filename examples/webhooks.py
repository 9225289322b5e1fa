"""Webhooks: each is delivered when it is due, no faster than the receiver likes, and again when it fails.

`dueline rate webhooks 20/s` limits all workers together, while they run.
"""

from http import HTTPStatus

import httpx

from dueline import Discard, ReceivedJob, Retry, Worker

worker = Worker()

_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


@worker.job("webhooks", concurrency=8)
async def deliver(job: ReceivedJob) -> None:
    """POST an event to its receiver. Any other failure is tried again as the queue's retry policy says."""
    async with httpx.AsyncClient(timeout=10) as receiver:
        answer = await receiver.post(job.payload["url"], json=job.payload["event"], headers={"idempotency-key": job.id})
    if answer.status_code in _LATER:
        raise Retry(float(answer.headers.get("retry-after", 30)))
    if answer.is_client_error:
        raise Discard(f"the receiver answered {answer.status_code}")
    answer.raise_for_status()


if __name__ == "__main__":
    worker.run()
