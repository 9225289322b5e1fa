"""A worker of three kinds of e-mails. `make run` shows it at work.

After `make up`: `eval "$(make -s env)"`, and then `dueline worker examples.worker:worker`.
"""

import os
from collections import Counter

from dueline import ReceivedJob, Retries, Worker

worker = Worker(os.environ.get("DUELINE_NAME", "dueline"))
calls = Counter[str]()


@worker.job("emails", kind="welcome", retry=Retries(attempts=2, first=1))
def welcome(job: ReceivedJob) -> None:
    """Tried twice, and then in the dead-letter queue: `dueline dead emails --retry` puts it back."""
    send(job, text="Welcome!")


@worker.job("emails", kind="receipt", retry=Retries(attempts=8, first=1, factor=2, most=600))
def receipt(job: ReceivedJob) -> None:
    """Tried for two minutes, each time after twice as long, with jitter."""
    send(job, text="Thank you for your order.")


@worker.job("emails")
def other(job: ReceivedJob) -> None:
    """What no other function takes: the digest of queues.yaml, and jobs without a kind."""
    send(job, text=f"What is new at {job.due:%H:%M} UTC.")


def send(job: ReceivedJob, *, text: str) -> None:
    """Send an e-mail, with whatever you send e-mails. This one fails as often as the payload says, to show that."""
    calls[job.id] += 1
    if calls[job.id] <= job.payload.get("failures", 0):
        raise ConnectionError("the mail server does not answer")
    print(f"to {job.payload['to']}: {text}", flush=True)


if __name__ == "__main__":
    worker.run()
