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

from dueline import Client, DeploymentNotFound
from dueline.cli.app import signals_as_ctrl_c
from dueline.config.deployment import load
from dueline.config.names import Names
from tests.acceptance.rights import KINDS, remove_role, role_name
from tests.waiting import PATIENT

ROOT = Path(__file__).parents[2]
QUEUES = Path(__file__).parent / "queues.yaml"
NAME = "dueline-verify"
CDK = ("npx", "--yes", "aws-cdk@2.1148.1")
APP = ("--all", "--app", f"{sys.executable} -m tests.acceptance.app", "--output", ".local/acceptance.out")


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


def remove(session: boto3.Session) -> int:
    """Remove it with all that is in it; return the exit code, which is that of the CDK: it says what is left."""
    names, make = Names(NAME), session.client
    for kind in KINDS:
        remove_role(make("iam"), role_name(names, kind))
    account = make("sts").get_caller_identity()["Account"]
    with suppress(make("s3").exceptions.NoSuchBucket):
        empty(make("s3"), names.payloads(account=account, region=str(session.region_name)))
    # A deployment that was interrupted goes on for a while.
    while _is_changing(make("cloudformation")):
        time.sleep(5)
    return call((*CDK, "destroy", *APP, "--force"))


def _is_changing(cloudformation: Any) -> bool:
    pages = cloudformation.get_paginator("describe_stacks").paginate()
    ours = [each for page in pages for each in page["Stacks"] if each["StackName"].startswith(f"{NAME}-")]
    return any(each["StackStatus"].endswith("_IN_PROGRESS") for each in ours)


def empty(s3: Any, bucket: str) -> None:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        if keys := [{"Key": each["Key"]} for each in page.get("Contents", [])]:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys})


# A run


def run(deploy: Sequence[str], tests: Sequence[str], *, remove: Callable[[], int]) -> int:
    """Deploy, test, and remove whatever happens, Ctrl-C included; return the exit code, which is the tests'."""
    code = 130
    try:
        with signals_as_ctrl_c():
            code = call(deploy) or call(tests)
    except KeyboardInterrupt:
        print("interrupted: the sandbox is being removed, which takes minutes", file=sys.stderr)
    finally:
        with undisturbed():
            left = remove()
    return code or left


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let neither SIGTERM nor Ctrl-C cut off what is done in here."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def call(command: Sequence[str]) -> int:
    """Run a command to its end; Ctrl-C reaches it too, and it ends in order."""
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"ACCEPTANCE": "aws"}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
