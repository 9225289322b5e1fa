"""A backup is read whole, in parts that begin again anywhere, from two tables in memory or on DynamoDB."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import pytest

from dueline.aws import recovery
from dueline.aws.dynamodb import DynamoTable
from dueline.aws.recovery import DynamoBackup
from dueline.config.environment import PUBLISHED_SCHEMAS
from dueline.config.names import Names
from dueline.core import instant, rows
from dueline.errors import DeploymentNotFound, InvalidJob
from dueline.operations.restore import NOW as NOW_DUE
from tests.api_harness import SETTINGS
from tests.builders import EMAILS, NOW, a_job, emails
from tests.contract.engines import TABLES, create_table
from tests.memory_operations import MemoryBackup

PARTITIONS = [emails(number) for number in range(5)]
OF = 3


@pytest.fixture
def backup(engine, monkeypatch):
    """A backup of 20 jobs and a pause, which answers with three rows at most."""
    table = engine.table()
    jobs = [a_job(partition=partition) for partition in PARTITIONS for _ in range(4)]
    table.write([rows.job_row(job) for job in jobs])
    table.write([rows.paused_row("emails", paused=True, at=NOW)])
    if not hasattr(table, "_client"):
        return MemoryBackup(table, part_rows=3), jobs
    monkeypatch.setattr(recovery, "PART_ROWS", 3)
    return DynamoBackup(table._client, jobs=table._name, state=table._state), jobs


def parts_of(backup, segment):
    after, more = None, True
    while more:
        part = backup.jobs(segment, of=OF, after=after)
        yield part.rows
        after, more = part.after, part.after is not None


@pytest.mark.parametrize("engine", TABLES, indirect=True)
def test_segment_holds_whole_partitions_in_order(backup):
    read, jobs = backup
    segments = [[rows.key(row) for part in parts_of(read, segment) for row in part] for segment in range(OF)]
    assert sorted(chain.from_iterable(segments)) == sorted(rows.job_key(job.id) for job in jobs)
    runs = [(pk, list(keys)) for segment in segments for pk, keys in groupby(segment, key=itemgetter(0))]
    assert sorted(pk for pk, _ in runs) == sorted(map(str, PARTITIONS))
    assert [keys for _, keys in runs if keys != sorted(keys)] == []


@pytest.mark.parametrize("engine", TABLES, indirect=True)
def test_states_and_jobs_are_read_by_key(backup):
    read, jobs = backup
    assert [rows.key(row) for row in read.states(after=None).rows] == [rows.paused_key("emails")]
    keys = [rows.paused_key("emails"), rows.job_key(jobs[0].id), ("emails#9", "none")]
    assert read.read(keys).rows.keys() == set(keys[:2])
    assert read.count() >= 0


@pytest.mark.parametrize("engine", ["dynalite"], indirect=True)
def test_missing_backup_table_is_named(engine):
    table = engine.table()
    with pytest.raises(DeploymentNotFound, match="no table 'nowhere'"):
        DynamoBackup(table._client, jobs="nowhere", state=table._state)


@pytest.mark.parametrize("engine", ["dynalite"], indirect=True)
def test_table_with_other_keys_is_refused(engine):
    table = engine.table()
    once = f"{table._name}-once"
    create_table(table._client, once, "id")
    with pytest.raises(InvalidJob, match=f"table {once} has the key id: one of jobs or states has pk, sk"):
        DynamoBackup(table._client, jobs=table._name, state=once)


@pytest.mark.parametrize("engine", ["dynalite"], indirect=True)
def test_backup_name_has_its_creation_time(engine):
    table = engine.table()
    backup = DynamoBackup(table._client, jobs=table._name, state=table._state)
    made = table._client.describe_table(TableName=table._name)["Table"]["CreationDateTime"]
    assert backup.name == f"{table._name}@{instant.text(made)}"


def test_example_policy_allows_what_a_restore_calls(session):
    names, called = Names("dueline"), set()

    def note(model, **_):
        # An action of IAM is the operation, but for a batch of messages.
        called.add(f"{model.service_model.endpoint_prefix}:{model.name.removesuffix('Batch')}")

    queue = session.client("sqs").create_queue(QueueName=names.inbound)["QueueUrl"]
    settings = asdict(replace(SETTINGS, deployment="dueline", queue_urls=queue.removesuffix(names.inbound)))
    for name, value in ((names.settings_parameter, settings), (names.schema_parameter, PUBLISHED_SCHEMAS)):
        session.client("ssm").put_parameter(Name=name, Value=json.dumps(value), Type="String")
    scheduler = session.client("scheduler")
    scheduler.create_schedule_group(Name=names.schedule_group)
    target = {"Arn": "arn:aws:lambda:eu-west-1:123456789012:function:f", "RoleArn": "arn:aws:iam::1:role/r"}
    rest = {"ScheduleExpression": "rate(1 minute)", "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target}
    scheduler.create_schedule(Name="emails.0", GroupName=names.schedule_group, **rest)
    copy = {"jobs": "dueline-jobs-restored", "state": "dueline-state-restored"}
    dynamodb = session.client("dynamodb")
    for table in (names.table, names.state, *copy.values()):
        create_table(dynamodb, table)
    now = datetime.now(UTC)
    # Of both tables one job that the other does not have, behind the cursor of the backup.
    lost, since = a_job(due=now - timedelta(hours=1)), a_job(due=now - timedelta(hours=2))
    backup = DynamoTable(dynamodb, copy["jobs"], state=copy["state"])
    backup.write([rows.job_row(lost), rows.job_row(a_job(due=now + timedelta(days=1)))])
    pk, sk = rows.state_key(EMAILS)
    cursor = rows.end_of(instant.text(now - timedelta(hours=1.5)))
    backup.write([{"pk": pk, "sk": sk, "cursor": cursor, "fence": cursor}])
    DynamoTable(dynamodb, names.table, state=names.state).write([rows.job_row(since)])
    session.events.register("before-parameter-build", note)
    rest = {"hand_over_from": None, "session": session, "on_progress": lambda *_: None}
    restore = recovery.restore("dueline", **copy, **rest)
    assert restore.apply().jobs["emails"][NOW_DUE] == 1
    policy = json.loads((Path(__file__).parents[2] / "examples" / "restore_policy.json").read_text())
    assert called == {action for statement in policy["Statement"] for action in statement["Action"]}
