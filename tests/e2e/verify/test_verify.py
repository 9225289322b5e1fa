"""`dueline verify`, as it is typed, against the deployed sandbox; then the sandbox is removed."""

import json
import os
import shlex
import subprocess
import sys
from contextlib import ExitStack, nullcontext

import boto3
import pytest

from dueline import Client
from dueline.aws.sandbox.deployments import Deployments
from dueline.aws.sandbox.faults import AwsFaults
from dueline.verify.sandbox import MOVED, NAME
from local.emulator import Emulator
from local.running import running
from local.template import ROOT
from tests.e2e.inbox import wait_until
from tests.waiting import HANG_SECONDS

# What a local AWS cannot judge.
OF_AWS_ALONE = {
    *("firings", "cold-starts", "fair", "rights", "bill", "throttled", "schedule-off", "table-denied"),
    *("alarms", "alarms-by-figure", "alarms-of-faults"),
}
DEPLOY = shlex.join([sys.executable, "-m", "local", "deploy", "--queues", "{queues}"])


def typed(env, *args):
    command = [sys.executable, "-m", "dueline", "--json", "verify", *args]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, timeout=4 * HANG_SECONDS
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.thorough
def test_what_a_local_aws_can_judge_passes_and_the_sandbox_can_be_removed(tmp_path, monkeypatch):
    emulator = Emulator(log=tmp_path / "log")
    queues = ROOT / "dueline" / "verify" / "queues.yaml"
    with running(queues, emulator=emulator, step=lambda _: nullcontext()) as deployment:
        env = deployment.endpoints.to_env()
        done, (*checks, last) = typed(env, "--yes", "--report", str(tmp_path), "--deploy", DEPLOY)
        assert done.returncode == 0, done.stdout + done.stderr
        verdicts = {check["check"]: check["verdict"] for check in checks}
        assert {name for name, verdict in verdicts.items() if verdict != "passed"} == OF_AWS_ALONE
        assert last["good"]
        assert deployment.endpoints.name == json.loads((tmp_path / last["report"][1]).read_text())["deployment"]
        assert_faults_are_mended(deployment, env, monkeypatch)
        assert_partitions_are_mended(deployment, env)
        # A killed run leaves jobs, for the sake of which the guard of their queue's stack refuses to go.
        Client.connect(deployment.endpoints.name, url=deployment.endpoints.api).schedule("plain", "left", delay=86_400)
        removed, _ = typed(env, "--remove", "--yes")
        assert removed.returncode == 0, removed.stderr


def assert_partitions_are_mended(deployment, env):
    """See that `--clean` deploys what it was before, after a run that was killed when a deployment had been refused."""
    names, client = deployment.deployment.names, Client.connect(deployment.endpoints.name, url=deployment.endpoints.api)
    deployments = Deployments(names, boto3.Session(), client=client, command=DEPLOY)

    def is_deployed(partitions):
        with deployments.deploying({MOVED: partitions}) as ended:
            assert wait_until(lambda: ended() is not None)
            return ended().is_through

    def as_it_is():
        (moved,) = (queue for queue in client.queues() if queue.name == MOVED)
        listed = deployment.emulator.client("scheduler").list_schedules(GroupName=names.schedule_group)["Schedules"]
        return moved.partitions, sorted(each["Name"] for each in listed if each["Name"].startswith(f"{MOVED}."))

    assert is_deployed(4)
    # One in a million times, all of these are in the partitions that stay.
    for _ in range(20):
        client.schedule(MOVED, "left", delay=86_400)
    assert not is_deployed(2)
    grown = (2, ["moved.0", "moved.1", "moved.2", "moved.3"])
    assert as_it_is() == grown
    told, _ = typed(env, "--clean")
    assert "partitions are not as many as before: NotDeployed: queue moved: add --deploy" in told.stderr
    assert as_it_is() == grown
    mended, _ = typed(env, "--clean", "--deploy", DEPLOY)
    assert (mended.returncode, mended.stderr) == (0, "")
    assert as_it_is() == (1, ["moved.0"])


def assert_faults_are_mended(deployment, env, monkeypatch):
    """See that each fault is there while it lasts, and that mending by name takes away what a killed run left."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    names, aws = deployment.deployment.names, deployment.emulator.client
    urls = deployment.endpoints.inbound_url.removesuffix(names.inbound)
    faults = AwsFaults(names, boto3.Session(), url=lambda name: urls + name)

    def states():
        listed = aws("scheduler").list_schedules(GroupName=names.schedule_group)["Schedules"]
        return {schedule["Name"]: schedule["State"] for schedule in listed}

    def concurrency():
        return (
            aws("lambda")
            .get_function_concurrency(FunctionName=names.function("tick"))
            .get("ReservedConcurrentExecutions")
        )

    def level():
        return names.queue("levels", 2) in [url.rpartition("/")[2] for url in aws("sqs").list_queues()["QueueUrls"]]

    def attributes():
        told = aws("sqs").get_queue_attributes(QueueUrl=urls + names.queue("levels", 2), AttributeNames=["All"])
        return {name: value for name, value in told["Attributes"].items() if "Timestamp" not in name}

    def most_writes():
        table = aws("dynamodb").describe_table(TableName=names.table)["Table"]
        return table.get("OnDemandThroughput", {}).get("MaxWriteRequestUnits", -1)

    def denied():
        roles = {each: aws("lambda").get_function(FunctionName=names.function(each)) for each in ("api", "ttl")}
        told = {each: role["Configuration"]["Role"].rpartition("/")[2] for each, role in roles.items()}
        return {
            each for each, role in told.items() if NAME in aws("iam").list_role_policies(RoleName=role)["PolicyNames"]
        }

    first = attributes()
    before = aws("scheduler").get_schedule(GroupName=names.schedule_group, Name="flood.0")["Target"]
    whole = states()
    with faults.schedule_off("plain"):
        assert {name for name, state in states().items() if state == "DISABLED"} == {"plain.0"}
    with faults.stopped("tick"):
        assert concurrency() == 0
    with faults.level_gone("levels", 2):
        assert not level()
    with faults.table_denied("api"), faults.schedules_hidden():
        assert denied() == {"api", "ttl"}
    assert denied() == set()
    with faults.throttled():
        assert most_writes() == 1
    assert (states(), concurrency(), attributes(), most_writes()) == (whole, None, first, -1)
    with ExitStack() as killed:
        killed.enter_context(faults.schedule_off("flood"))
        killed.enter_context(faults.stopped("tick"))
        killed.enter_context(faults.table_denied("api", "ingest"))
        killed.enter_context(faults.schedules_hidden())
        killed.enter_context(faults.level_gone("levels", 2))
        killed.enter_context(faults.throttled())
        faults.mend()
        assert denied() == set()
        assert (states(), concurrency(), attributes(), most_writes()) == (whole, None, first, -1)
    after = aws("scheduler").get_schedule(GroupName=names.schedule_group, Name="flood.0")["Target"]
    assert after == before
