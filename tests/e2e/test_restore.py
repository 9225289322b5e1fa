"""Rows of a deployment are deleted, and taken over again from a copy of its tables.

The copy is made by a scan: the emulator has no point-in-time recovery.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from dueline.aws.dynamodb_items import item, key_item
from dueline.config.names import Names
from dueline.core import rows
from dueline.core.job import JobId, StoredJob
from local.emulator import Emulator
from local.endpoints import Endpoints
from tests.e2e.environment import environment_of
from tests.e2e.inbox import Inbox
from tests.waiting import HANG_SECONDS, wait_until

NAMES, QUEUE = Names("e2e"), "invoices"
BACKUP = {NAMES.table: "e2e-jobs-restored", NAMES.state: "e2e-state-restored"}


@pytest.fixture
def restore(emulator: Emulator, endpoints: Endpoints, commands: Path) -> Callable[..., Any]:
    """Runs `dueline restore`, and returns what it reports."""

    def run(*args: str) -> Any:
        tables = ("--jobs", BACKUP[NAMES.table], "--state", BACKUP[NAMES.state])
        command = [str(commands / "dueline"), "restore", *tables, *args, "--json"]
        result = subprocess.run(
            command, env=environment_of(emulator, "e2e"), capture_output=True, text=True, timeout=HANG_SECONDS
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run


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


def test_restore_brings_no_cancelled_jobs(
    emulator: Emulator, http: httpx.Client, inbox: Callable[[str], Inbox], restore: Callable[..., Any]
) -> None:
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
    arrived, since = inbox(QUEUE), (now - timedelta(minutes=2)).isoformat()
    for applying in ((), ("--apply", "--yes")):
        counts = restore("--hand-over-from", since, *applying)["queues"][QUEUE]
        assert (counts["now"], counts["later"]) == (1, 2)
    assert wait_until(lambda: bool(arrived.of(str(overdue))))
    states = [http.get(f"/queues/{QUEUE}/jobs/{id}").json()["state"] for id in ids]
    assert states == ["scheduled", "scheduled", "cancelled"]
    moved = http.patch(f"/queues/{QUEUE}/jobs/{ids[1]}", json={"delay": 0}).json()["id"]
    assert wait_until(lambda: bool(arrived.of(moved)))
    assert restore("--hand-over-from", since, "--apply", "--yes")["left"] is False
    assert [len(arrived.of(str(id))) for id in (overdue, cancelled)] == [1, 0]
