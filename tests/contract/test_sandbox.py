"""The sandbox of the acceptance tests: what is removed, by exact names."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from dueline.config.names import Names
from local.emulator import ACCOUNT, CREDENTIALS, REGION, Emulator
from tests.acceptance import sandbox
from tests.acceptance.rights import role_name
from tests.acceptance.sandbox import NAME, Removal

NAMES, OTHER = Names(NAME), Names(f"{NAME}-ci")
TABLE: Any = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
EMPTY_STACK = '{"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}'


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A local AWS of its own, for what is removed."""
    with Emulator(log=tmp_path_factory.mktemp("removal") / "log") as emulator:
        yield emulator


@pytest.fixture
def account(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> boto3.Session:
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    return boto3.Session(region_name=REGION, **CREDENTIALS)


def fill(session: boto3.Session, names: Names) -> None:
    make: Any = session.client
    sqs, dynamodb, logs, s3 = make("sqs"), make("dynamodb"), make("logs"), make("s3")
    for name in sandbox.queue_names():
        sqs.create_queue(QueueName=name.replace(NAME, names.deployment))
    for name in sandbox.table_names():
        table = name.replace(NAME, names.deployment)
        dynamodb.create_table(TableName=table, DeletionProtectionEnabled=True, **TABLE)
    for name in (*sandbox.log_names()[:2], NAMES.access_log):
        logs.create_log_group(logGroupName=name.replace(NAME, names.deployment))
    bucket = names.payloads(account=ACCOUNT, region=REGION)
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="0032/plain/x", Body=b"1")
    for group in (names.schedule_group, names.watch_group):
        make("scheduler").create_schedule_group(Name=group)
    for stack in (names.core_stack, names.queue_stack("plain")):
        make("cloudformation").create_stack(StackName=stack, TemplateBody=EMPTY_STACK, EnableTerminationProtection=True)
    make("iam").create_role(RoleName=role_name(names, "producer"), AssumeRolePolicyDocument="{}")


def everything(session: boto3.Session) -> list[str]:
    make: Any = session.client
    return sorted(
        [
            *(url.rpartition("/")[2] for url in make("sqs").list_queues().get("QueueUrls", [])),
            *make("dynamodb").list_tables()["TableNames"],
            *(each["logGroupName"] for each in make("logs").describe_log_groups()["logGroups"]),
            *(each["Name"] for each in make("s3").list_buckets()["Buckets"]),
            *(each["Name"] for each in make("scheduler").list_schedule_groups()["ScheduleGroups"]),
            *(each["StackName"] for each in make("cloudformation").describe_stacks()["Stacks"]),
            *(each["RoleName"] for each in make("iam").list_roles()["Roles"]),
        ]
    )


def test_removal_spares_similar_names(account: boto3.Session) -> None:
    fill(account, OTHER)
    others, slept = everything(account), list[float]()
    fill(account, NAMES)
    assert Removal(account, sleep=slept.append).run() == []
    assert everything(account) == others
    # SQS lets nobody make a queue of the same name for so long.
    assert slept == [60]
    assert Removal(account, sleep=slept.append).run() == []
    assert (everything(account), slept) == (others, [60])


def test_removal_says_what_is_left(account: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(account, NAMES)
    monkeypatch.setattr(
        Removal, "_delete_table", lambda *_: account.client("dynamodb").delete_table(TableName=NAMES.table)
    )
    left = Removal(account, sleep=lambda _: None).run()
    assert [each.partition(":")[0] for each in left] == sandbox.table_names()


OK, FAILS = [sys.executable, "-c", ""], [sys.executable, "-c", "raise SystemExit(3)"]


@pytest.mark.parametrize(
    ("deploy", "tests", "left", "code"),
    [(OK, OK, [], 0), (FAILS, OK, [], 3), (OK, OK, ["a table"], 1), (OK, FAILS, ["a table"], 3)],
)
def test_run_exits_with_the_tests_code(deploy: list[str], tests: list[str], left: list[str], code: int) -> None:
    assert sandbox.run(deploy, tests, remove=lambda: left) == code


def test_interrupted_run_is_removed() -> None:
    code = textwrap.dedent(f"""
        import signal, sys
        from tests.acceptance import sandbox
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupt = "import os, time; os.kill(os.getppid(), {int(signal.SIGTERM)}); time.sleep(60)"
        sys.exit(sandbox.run([sys.executable, "-c", interrupt], [], remove=lambda: print("removed") or []))
    """)
    env = {**os.environ, "PYTHONPATH": str(sandbox.ROOT)}
    ended = subprocess.run([sys.executable, "-c", code], cwd=sandbox.ROOT, env=env, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (130, "removed\n"), ended.stderr
