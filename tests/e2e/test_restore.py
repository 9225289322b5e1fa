"""Rows of a deployment are deleted, and taken over again from a copy of its tables.

The copy is made by a scan: the emulator has no point-in-time recovery.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from dueline.aws.dynamodb_items import item, key_item
from dueline.config.names import Names
from dueline.core import rows
from dueline.core.job import JobId, StoredJob
from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.acceptance.inbox import Inbox
from tests.e2e.conftest import Shell

NAMES, QUEUE = Names("e2e"), "invoices"
BACKUP = {NAMES.table: "e2e-jobs-restored", NAMES.state: "e2e-state-restored"}


@pytest.fixture
def inbox(emulator: Emulator, endpoints: Endpoints) -> Iterator[Inbox]:
    opened = Inbox(emulator.client("sqs"), NAMES.queue(QUEUE), threads=1).open()
    yield opened
    opened.close()


def copied(dynamodb: Any) -> None:
    """Copy the rows of the tests' queue: other tests have left hundreds of others'."""
    for table, copy in BACKUP.items():
        keys = dynamodb.describe_table(TableName=table)["Table"]
        made = {name: keys[name] for name in ("KeySchema", "AttributeDefinitions")}
        dynamodb.create_table(TableName=copy, BillingMode="PAY_PER_REQUEST", **made)
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            for each in page["Items"]:
                if each["pk"]["S"].startswith(QUEUE):
                    dynamodb.put_item(TableName=copy, Item=each)


def rows_of(dynamodb: Any, id: JobId) -> list[rows.Key]:
    page = dynamodb.query(
        TableName=NAMES.table,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :job)",
        ExpressionAttributeValues=item({":pk": str(id.partition), ":job": rows.job_key(id)[1].removesuffix("#job")}),
    )
    return [(each["pk"]["S"], each["sk"]["S"]) for each in page["Items"]]


def test_restore_brings_no_cancelled_jobs(emulator: Emulator, http: httpx.Client, inbox: Inbox, shell: Shell) -> None:
    def restore(options: str) -> Any:
        tables = f"--jobs {BACKUP[NAMES.table]} --state {BACKUP[NAMES.state]}"
        return json.loads(shell(f"dueline restore {tables} {options} --json"))

    dynamodb, now = emulator.client("dynamodb"), datetime.now(UTC)
    ids = [
        JobId.parse(http.post(f"/queues/{QUEUE}/jobs", json={"payload": number, "delay": 3600}).json()["id"])
        for number in range(3)
    ]
    cancelled, overdue = ids[2], replace(ids[0], due=now - timedelta(minutes=1))
    assert http.delete(f"/queues/{QUEUE}/jobs/{cancelled}").json()["state"] == "cancelled"
    copied(dynamodb)
    late = StoredJob(id=overdue, payload='"late"', expires=now + timedelta(days=1))
    dynamodb.put_item(TableName=BACKUP[NAMES.table], Item=item(rows.job_row(late)))
    for key in [key for id in ids for key in rows_of(dynamodb, id)]:
        dynamodb.delete_item(TableName=NAMES.table, Key=key_item(key))
    assert http.get(f"/queues/{QUEUE}/jobs/{cancelled}").json().get("state") != "cancelled"
    since = f"--hand-over-from {(now - timedelta(minutes=2)).isoformat()}"
    for applying in ("", "--apply --yes"):
        counts = restore(f"{since} {applying}")["queues"][QUEUE]
        assert (counts["now"], counts["later"]) == (1, 2)
    inbox.wait_for(str(overdue))
    states = [http.get(f"/queues/{QUEUE}/jobs/{id}").json()["state"] for id in ids]
    assert states == ["scheduled", "scheduled", "cancelled"]
    moved = http.patch(f"/queues/{QUEUE}/jobs/{ids[1]}", json={"delay": 0}).json()["id"]
    inbox.wait_for(moved)
    assert restore(f"{since} --apply --yes")["left"] is False
    assert [len(inbox.of(str(id))) for id in (overdue, cancelled)] == [1, 0]
