"""How AWS has the deployment set: what keeps jobs from being lost, and reports when something is wrong."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from dueline import Client
from dueline.config.names import Names
from dueline.core.queue_settings import PLANNER
from tests.acceptance import sandbox
from tests.acceptance.conftest import Figure

# The longest that SQS keeps a message: nobody who is on holiday loses one.
DAYS_14 = 14 * 86_400
Aws = Callable[[str], Any]


def test_every_schedule_fires(names: Names, client: Client, aws: Aws) -> None:
    pages = aws("scheduler").get_paginator("list_schedules")
    groups = (names.schedule_group, names.watch_group)
    states = {
        each["Name"]: each["State"]
        for group in groups
        for page in pages.paginate(GroupName=group)
        for each in page["Schedules"]
    }
    partitions = [partition for queue in (*client.queues(), PLANNER) for partition in queue.all_partitions()]
    ticks = {names.schedule(each.queue, each.number) for each in partitions}
    assert {name for name in {*ticks, names.planner_watch} if states.get(name) != "ENABLED"} == set()


def test_dead_letters_are_kept_for_14_days(names: Names, client: Client, aws: Aws) -> None:
    sqs, wrong = aws("sqs"), list[str]()

    def attributes(name: str) -> dict[str, str]:
        url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return dict(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"])

    def dead_letters(name: str) -> str:
        policy = json.loads(attributes(name).get("RedrivePolicy") or "{}")
        return str(policy.get("deadLetterTargetArn", "")).rpartition(":")[2]

    expected = {names.inbound: names.inbound_dlq}
    for queue in client.queues():
        for priority in range(1, queue.priorities + 1):
            expected[names.queue(queue.name, priority)] = names.queue_dlq(queue.name)
    wrong += [name for name, dead in expected.items() if dead_letters(name) != dead]
    keeping = {*expected.values(), names.dispatch_dlq, names.tick_dlq}
    wrong += [name for name in keeping if int(attributes(name)["MessageRetentionPeriod"]) < DAYS_14]
    assert wrong == []


@pytest.mark.parametrize("table", sandbox.table_names())
def test_table_expires_rows_and_is_protected(aws: Aws, table: str) -> None:
    dynamodb = aws("dynamodb")
    assert dynamodb.describe_table(TableName=table)["Table"].get("DeletionProtectionEnabled")
    ttl = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"]
    assert ttl in ("ENABLED", "ENABLING")


def alarms_of(names: Names, aws: Aws) -> Iterator[Any]:
    pages = aws("cloudwatch").get_paginator("describe_alarms")
    for page in pages.paginate(AlarmNamePrefix=f"{names.deployment}-", AlarmTypes=["MetricAlarm"]):
        yield from page["MetricAlarms"]


def test_every_alarm_notifies_somebody(names: Names, aws: Aws, figure: Figure) -> None:
    alarms = list(alarms_of(names, aws))
    assert figure("alarms", len(alarms)) > 0
    mute = [each["AlarmName"] for each in alarms if not (each.get("AlarmActions") and each.get("ActionsEnabled", True))]
    assert mute == []


def test_deployment_that_is_in_use_is_refused(client: Client, session: boto3.Session) -> None:
    id = client.schedule("flood", 1, delay=86_400).id
    with pytest.raises(sandbox.Refused, match=f"{sandbox.NAME} has jobs in queue"):
        sandbox.refuse_other_deployments(session)
    sandbox.refuse_other_queues(session)
    client.cancel(id)


def test_deployment_with_other_queues_is_refused(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "queues.yaml"
    other.write_text(f"name: {sandbox.NAME}\nqueues:\n  plain:\n")
    monkeypatch.setattr(sandbox, "QUEUES", other)
    with pytest.raises(sandbox.Refused, match="the sandbox has \\['plain'\\] and no others"):
        sandbox.refuse_other_deployments(session)
    with pytest.raises(sandbox.Refused, match=r"has the queues .*'flood'.*, which the sandbox does not have"):
        sandbox.refuse_other_queues(session)
