"""The sandbox: a deployment of one exact name, which is deployed, refused to others, and removed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from dueline import Client, DeploymentNotFound
from dueline.cli.app import signals_as_ctrl_c
from dueline.config.deployment import load
from dueline.config.names import Names
from dueline.core.queue_settings import PLANNER
from tests.acceptance.faults import Faults
from tests.acceptance.rights import KINDS, remove_role, role_name
from tests.waiting import PATIENT

ROOT = Path(__file__).parents[2]
QUEUES = Path(__file__).parent / "queues.yaml"
NAME = "dueline-verify"
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
SQS_DELETES_FOR_SECONDS = 60
_LOOKS = {"Delay": 5, "MaxAttempts": 720}
_MISSING = ("404", "NoSuchBucket", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
_MISSING += ("ResourceNotFoundException", "ValidationError", "NoSuchEntity")


class Refused(Exception):
    """Nothing was done; the message says why."""


def refuse_others(session: boto3.Session) -> None:
    """Raise Refused if what has that name, even half removed, has a queue that the sandbox does not have."""
    path, ssm = Names(NAME).queue_parameters, session.client("ssm")
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path)
    deployed = {each["Name"].rpartition("/")[2] for page in pages for each in page["Parameters"]}
    if others := sorted(deployed - set(load(QUEUES).queues)):
        raise Refused(f"{NAME} has the queues {others}, which the sandbox does not have: nothing was touched")


def refuse_jobs(session: boto3.Session) -> None:
    """Raise Refused if somebody uses it."""
    with suppress(DeploymentNotFound):
        client = Client.connect(NAME, session=session, patience=PATIENT)
        for queue in client.queues():
            overview = client.queue(queue.name)
            depth = overview.depth
            if overview.scheduled or depth.waiting or depth.in_flight or depth.delayed:
                raise Refused(f"{NAME} has jobs in queue {queue.name}: wait for their run, or remove it")


# Removal


def queue_names() -> list[str]:
    """Return the exact names of the sandbox's SQS queues."""
    names, queues = Names(NAME), load(QUEUES).queues
    levels = [names.queue(each, level) for each in queues for level in range(1, queues[each].priorities + 1)]
    dead = [names.queue_dlq(each) for each in queues]
    planner = [names.queue(PLANNER.name), names.queue_dlq(PLANNER.name)]
    return [*levels, *dead, *planner, names.inbound, names.inbound_dlq, names.dispatch_dlq, names.tick_dlq]


def table_names() -> list[str]:
    names = Names(NAME)
    return [names.table, names.state, names.once]


def log_names() -> list[str]:
    names, functions = Names(NAME), sorted(path.stem for path in (ROOT / "dueline" / "functions").glob("[a-z]*.py"))
    return [*map(names.function_log, functions), names.access_log]


class Removal:
    """Removes the sandbox: its stacks, and by their exact names the resources that outlive them."""

    def __init__(self, session: boto3.Session, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._session, self._sleep, self._names = session, sleep, Names(NAME)
        self._aws: Any = session.client
        account = self._aws("sts").get_caller_identity()["Account"]
        self._bucket = self._names.payloads(account=account, region=str(session.region_name))

    def run(self) -> list[str]:
        """Remove it; return what is left, each with the reason that AWS gave."""
        left = list[str]()
        for what, remove in self._steps():
            try:
                remove()
            except Exception as error:
                if not _is_missing(error):
                    left.append(f"{what}: {error}")
        return left

    def _steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        names, iam = self._names, self._aws("iam")
        yield "what a run broke", Faults(names, self._aws).mend_functions
        for role in (role_name(names, kind) for kind in KINDS):
            yield role, lambda role=role: remove_role(iam, role)
        # A queue's stack comes after the core's, and goes before it.
        for stack in (*map(names.queue_stack, load(QUEUES).queues), names.core_stack):
            yield stack, lambda stack=stack: self._delete_stack(stack)
        scheduler, logs = self._aws("scheduler"), self._aws("logs")
        for group in (names.schedule_group, names.watch_group):
            yield group, lambda group=group: scheduler.delete_schedule_group(Name=group)
        for table in table_names():
            yield table, lambda table=table: self._delete_table(table)
        yield self._bucket, self._delete_bucket
        for log in log_names():
            yield log, lambda log=log: logs.delete_log_group(logGroupName=log)
        yield "queues", self._delete_queues

    def _delete_stack(self, name: str) -> None:
        cloudformation = self._aws("cloudformation")
        while cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"].endswith("_IN_PROGRESS"):
            self._sleep(5)
        cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
        cloudformation.delete_stack(StackName=name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig=_LOOKS)

    def _delete_table(self, name: str) -> None:
        dynamodb = self._aws("dynamodb")
        dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
        dynamodb.get_waiter("table_exists").wait(TableName=name)
        dynamodb.delete_table(TableName=name)
        dynamodb.get_waiter("table_not_exists").wait(TableName=name)

    def _delete_bucket(self) -> None:
        s3 = self._aws("s3")
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
            if keys := [{"Key": each["Key"]} for each in page.get("Contents", [])]:
                s3.delete_objects(Bucket=self._bucket, Delete={"Objects": keys})
        s3.delete_bucket(Bucket=self._bucket)

    def _delete_queues(self) -> None:
        """Delete the queues that are there, and wait until SQS lets their names be used again."""
        sqs, deleted = self._aws("sqs"), 0
        for name in queue_names():
            with suppress(sqs.exceptions.QueueDoesNotExist):
                sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
                deleted += 1
        if deleted:
            self._sleep(SQS_DELETES_FOR_SECONDS)


def _is_missing(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"].get("Code") in _MISSING


# A run


def run(deploy: Sequence[str], tests: Sequence[str], *, remove: Callable[[], list[str]]) -> int:
    """Deploy, test, and remove whatever happens, Ctrl-C included; return the exit code, which is the tests'."""
    code = 130
    try:
        with signals_as_ctrl_c():
            code = _call(deploy) or _call(tests)
    except KeyboardInterrupt:
        print("interrupted: the sandbox is being removed, which takes minutes", file=sys.stderr)
    finally:
        with undisturbed():
            left = remove()
        for each in left:
            print(f"left: {each}", file=sys.stderr)
    return code or (1 if left else 0)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let neither SIGTERM nor Ctrl-C cut off what is done in here."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _call(command: Sequence[str]) -> int:
    """Run a command to its end; Ctrl-C reaches it too, and it ends in order."""
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"ACCEPTANCE": "aws"}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
