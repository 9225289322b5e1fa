"""Jobs whose rows have 1 KB before they are packed, and what is made of them before anything is measured."""

import json
import random
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from bench.cpu.answers import Stock, Told
from bench.dynein import SCHEDULED, cut
from dueline.aws.dynamodb.typed import typed
from dueline.config.settings import PUBLISHED_SCHEMAS, ApiSettings, TickSettings
from dueline.config.work import published
from dueline.model import instant, rows
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.message import Message, type_of
from dueline.model.queue_settings import QueueSettings
from dueline.model.rows import Row
from dueline.model.work_settings import WorkSettings

DEPLOYMENT = "dueline"
QUEUE = QueueSettings(name="emails", partitions=1, retention=timedelta(days=7))
PARTITION = Partition(queue=QUEUE.name, number=0)
ROW_BYTES = 1024
# A page of 1 MB holds so many of them, unpacked.
PAGE_ROWS = 1000
# What Dynein asks of a page.
DYNEIN_ROWS = 100
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RECEIVED = 100


def payload(random: random.Random, *, size: int = 880) -> dict[str, str]:
    """Return a payload of about so many bytes as JSON, about as random as an e-mail's."""
    return {"to": "ann@example.com", "text": "".join(random.choices(_LETTERS, k=size))}


def jobs(count: int, *, due: datetime) -> list[Job]:
    """Return jobs of the table, due one after the other within a minute from `due`; the same for each run."""
    drawn = random.Random(1)
    first = instant.epoch_ms(due)
    return [_job(drawn, due=instant.from_epoch_ms(first + place * 60_000 // count)) for place in range(count)]


def _job(drawn: random.Random, *, due: datetime) -> Job:
    uid = "-".join(f"{drawn.getrandbits(4 * digits):0{digits}x}" for digits in (8, 4, 4, 4, 12))
    id = JobId(partition=PARTITION, route=Route.TABLE, due=due, uid=uid)
    text = json.dumps(payload(drawn), separators=(",", ":"))
    return Job(id=id, payload=text, expires=due + QUEUE.retention)


def stock(of_table: Sequence[Job], *, queue_urls: str) -> Stock:
    """Return what AWS answers with: the jobs as rows and as messages, and the parameters of the deployment."""
    written = [rows.job_row(job) for job in of_table]
    return Stock(
        pages=_pages(written),
        limited_page=_page([{**row, "status": SCHEDULED} for row in written[:DYNEIN_ROWS]], more=False),
        messages=[_message(job) for job in of_table[:_RECEIVED]],
        parameters=_parameters(queue_urls),
    )


def _pages(written: Sequence[Row]) -> dict[str, Told]:
    pages, low = {}, rows.FIRST
    cuts = list(cut(written, PAGE_ROWS))
    for number, some in enumerate(cuts, start=1):
        pages[low] = _page(some, more=number < len(cuts))
        low = str(some[-1]["sk"])
    return pages


def _page(some: Sequence[Row], *, more: bool) -> Told:
    items = [{name: _on_the_wire(typed(value)) for name, value in row.items()} for row in some]
    last = {"LastEvaluatedKey": {name: items[-1][name] for name in ("pk", "sk")}} if more else {}
    return {"Count": len(items), "Items": items, "ScannedCount": len(items), **last}


def _on_the_wire(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {kind: b64encode(told).decode() if kind == "B" else told for kind, told in value.items()}


def _message(job: Job) -> Told:
    message = Message.of(job)
    attributes = {
        name: {"DataType": type_of(name, value), "StringValue": value} for name, value in message.attributes.items()
    }
    told = {"ApproximateReceiveCount": "1", "SentTimestamp": str(instant.epoch_ms(job.id.due))}
    return {"Body": message.body, "MessageAttributes": attributes, "Attributes": told}


def tick_settings(queue_urls: str) -> TickSettings:
    """Return the settings that a deployment has by default."""
    return TickSettings(deployment=DEPLOYMENT, queue_urls=queue_urls, tick_period=60, lookahead=240, lease=30)


def _parameters(queue_urls: str) -> dict[str, str]:
    settings = ApiSettings(
        deployment=DEPLOYMENT, queue_urls=queue_urls, payloads="payloads", direct_horizon=890, lookahead=240
    )
    url = f"{queue_urls}{DEPLOYMENT}_{QUEUE.name}"
    work = WorkSettings(queue=QUEUE, urls=(url,), dead_letters=f"{url}_dlq")
    return {
        f"/dueline/{DEPLOYMENT}/settings": json.dumps(asdict(settings)),
        f"/dueline/{DEPLOYMENT}/schema": json.dumps(PUBLISHED_SCHEMAS),
        f"/dueline/{DEPLOYMENT}/queues/{QUEUE.name}": json.dumps(published(work)),
    }
