"""A shop in the middle of an incident: a bug has filled a dead-letter queue, a queue is late, a campaign is wrong."""

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline import Client, Discard, NewJob, ReceivedJob, State, Worker
from dueline.config import metrics
from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.console.figures import put_figures
from tests.e2e.working import working
from tests.waiting import wait_until

NAMES = ("ann", "bob", "carol", "dave", "eve", "frank", "grace", "heidi")
TENANTS = ("acme", "globex", "initech", "umbrella")
MINUTES = 180
_chance = random.Random(15)


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """What a picture needs to know: the id of a job that succeeded at its third attempt."""

    retried: str


@contextmanager
def running_story(emulator: Emulator, endpoints: Endpoints, client: Client) -> Iterator[Story]:
    """Have the incident happen; workers run while the context lasts."""
    _begin_schedules(client)
    assert wait_until(lambda: client.queue("campaigns").fence_age is not None)
    _stop_ticks(emulator, endpoints, "campaigns")
    _measure(emulator, endpoints)
    client.schedule_many("campaigns", [*_overdue(), *_wrong_campaign()])
    client.schedule_many("invoices", list(_invoices()))
    client.set_rate("invoices", "50/s")
    client.pause("billing")
    client.schedule_many("billing", [NewJob(payload={"customer": name, "cents": 500}) for name in NAMES * 3])
    _bury(emulator, endpoints, client)
    worker = _worker()
    with working(worker):
        yield _work(client)


def _stop_ticks(emulator: Emulator, endpoints: Endpoints, queue: str) -> None:
    """Hold the lease of a partition, as a tick does that hangs: nothing of it is dispatched."""
    until = (datetime.now(UTC) + timedelta(hours=2)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    emulator.client("dynamodb").update_item(
        TableName=f"{endpoints.name}-state",
        Key={"pk": {"S": f"{queue}#0"}, "sk": {"S": "!state"}},
        UpdateExpression="SET #owner = :owner, #lease = :lease",
        ExpressionAttributeNames={"#owner": "owner", "#lease": "lease"},
        ExpressionAttributeValues={":owner": {"S": "hangs"}, ":lease": {"S": until}},
    )


def _overdue() -> Iterator[NewJob]:
    """Yield jobs that go by the table, and are due when the pictures are taken."""
    for number in range(40):
        yield NewJob(payload={"campaign": "autumn", "to": _someone(number)}, delay=26, tenant="acme")


def _wrong_campaign() -> Iterator[NewJob]:
    """Yield jobs of which a third should not have been scheduled."""
    for number in range(1400):
        minute = min(355, int(abs(_chance.gauss(0, 80))) + 2)
        wrong = number % 3 == 0
        payload = {"campaign": "black-friday" if wrong else "autumn", "to": _someone(number)}
        yield NewJob(payload=payload, delay=minute * 60 + number % 60, tenant="globex" if wrong else "acme")


def _invoices() -> Iterator[NewJob]:
    for number in range(120):
        at = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=6 * number + 7)
        yield NewJob(
            payload={"invoice": 5200 + number, "customer": _someone(number)}, at=at, tenant=TENANTS[number % 4]
        )


def _someone(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]}{number}@example.com"


# Each with the line of the handler that raised it.
FAILURES: tuple[tuple[str, str, str, int], ...] = (
    ("KeyError", "'delivery_address'", 'address = order["delivery_address"]', 37),
    ("ReadTimeout", "hooks.globex.example did not answer within 10 s", "response = post(order, timeout=10)", 12),
    ("Discard", "the receiver answered 410", 'raise Discard("the receiver answered 410")', 3),
)


def _bury(emulator: Emulator, endpoints: Endpoints, client: Client) -> None:
    """Put jobs into the dead-letter queue of webhooks, as workers do after the last attempt."""
    sqs, url = emulator.client("sqs"), endpoints.dead_letter_queues["webhooks"]
    for error, reason, line, count in FAILURES:
        stack = f'File "/app/shop/webhooks.py", line 41, in deliver\n    {line}\n{error}: {reason}'
        for number in range(count):
            job = client.schedule("webhooks", 1, delay=timedelta(days=30))
            client.cancel(job.id)
            due = (datetime.now(UTC) - timedelta(minutes=number + 3)).isoformat(timespec="milliseconds")
            values = {"dueline-id": job.id, "dueline-due": due.replace("+00:00", "Z"), "dueline-error": error}
            values |= {"dueline-reason": reason, "dueline-attempts": "10", "dueline-tenant": TENANTS[number % 4]}
            values["dueline-stack"] = stack
            body = f'{{"order": {81000 + number}, "url": "https://hooks.globex.example/orders", "event": "shipped"}}'
            attributes = {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
            sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)


def _begin_schedules(client: Client) -> None:
    """Put one that runs every minute, so that it soon has runs behind it, and one that is paused."""
    schedules = client.schedules("reminders")
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=8)
    schedules.put("carts", every=60, start=soon, payload={"older_than": "1h"}, owner="growth")
    schedules.put("newsletter", cron="0 8 * * SUN", zone="Europe/Berlin", payload={"issue": 48}, owner="marketing")
    schedules.pause("newsletter")


def _worker() -> Worker:
    """Return a worker of emails and reminders: one job succeeds at its third attempt, one never."""
    worker, tries = Worker("shop"), dict[str, int]()

    @worker.job("emails")
    def send(job: ReceivedJob) -> None:
        tries[job.id] = tries.get(job.id, 0) + 1
        if job.payload["to"] == "nobody":
            raise Discard("no such mailbox")
        if job.payload["to"] == "carol@example.com" and tries[job.id] < 3:
            raise ConnectionError("smtp.example.com closed the connection")

    @worker.job("reminders")
    def remind(_: ReceivedJob) -> None: ...

    return worker


def _work(client: Client) -> Story:
    sent = [client.schedule("emails", {"to": f"{name}@example.com", "template": "welcome"}) for name in NAMES]
    lost = client.schedule("emails", {"to": "nobody"})
    later = [NewJob(payload={"to": _someone(n), "template": "trial"}, delay=1200 + n * n * 30) for n in range(48)]
    client.schedule_many("emails", later)
    _wait(client, [job.id for job in sent], State.SUCCEEDED)
    _wait(client, [lost.id], State.FAILED)
    assert wait_until(lambda: any(run.state == "succeeded" for run in client.schedules("reminders").history("carts")))
    return Story(retried=sent[2].id)


def _wait(client: Client, ids: list[str], state: State) -> None:
    assert wait_until(lambda: all(client.get(id).state is state for id in ids), every=0.5)


def _measure(emulator: Emulator, endpoints: Endpoints) -> None:
    """Log what functions logged of the last hours."""
    lines = [_at(queue, minute) for queue in endpoints.queues for minute in range(MINUTES)]
    put_figures(emulator, endpoints.name, lines)


def _at(queue: str, minute: int) -> tuple[timedelta, dict[str, Any]]:
    """Return a queue's figures of so many minutes ago."""
    jobs = int(_BUSY[queue] * (1.6 + math.sin(minute / 23)) * _chance.uniform(0.8, 1.2))
    late = queue == "campaigns" and minute < 4
    delayed = int(jobs * 0.3) if queue == "campaigns" and minute < 7 else 0
    values = {
        metrics.DISPATCHED: 0 if late else jobs,
        metrics.ON_TIME: 0 if late else jobs - delayed,
        metrics.DELAYED: delayed,
        metrics.LATENESS: (4 - minute) * 60.0 if late else 0.0,
    }
    shown = {name: value for name, value in values.items() if value}
    return timedelta(minutes=minute), {"queue": queue, **shown}


_BUSY = {"emails": 140, "invoices": 22, "campaigns": 260, "webhooks": 90, "billing": 35, "reminders": 6}
