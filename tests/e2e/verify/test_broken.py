"""What is broken in a deployed sandbox, one thing after another, is told by its check and by no other."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import boto3
import httpx
import pytest

from dueline import Client
from dueline.aws.sandbox.levels import AwsLevels
from dueline.aws.sandbox.sandbox import AwsSandbox
from dueline.config.names import Names
from dueline.retry.patience import Patience
from dueline.verify import trial
from dueline.verify.check import Result, Verdict
from dueline.verify.checks import CHECKS
from dueline.verify.checks.alarms import FUNCTIONS, ON_FAULTS
from dueline.verify.checks.alarms_by_figure import BY_FIGURE
from dueline.verify.run import Run
from dueline.verify.sandbox import Figure
from dueline.verify.trial import Scale
from local.emulator import ACCOUNT, Emulator
from local.running import running
from local.template import ROOT
from tests.waiting import HANG_SECONDS

NAMES = Names("dueline-verify")
# Whatever is broken, these are run too: they take no longer than a look.
QUICK = ("settings", "policies")
ALL = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@dataclass(frozen=True, kw_only=True)
class Site:
    """A deployed sandbox, and the clients of an administrator of the AWS that it is in."""

    sandbox: AwsSandbox
    aws: Callable[[str], Any]
    urls: str

    def run(self, *names: str) -> dict[str, Result]:
        checks = [check for check in CHECKS if check.name in names]
        run = Run(sandbox=self.sandbox, checks=checks, scale=Scale.QUICK, name="broken")
        return {result.check: result for result in run.results(Unwatched())}


class Unwatched:
    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    emulator = Emulator(log=tmp_path_factory.mktemp("broken") / "log")
    queues = ROOT / "dueline" / "verify" / "queues.yaml"
    with (
        pytest.MonkeyPatch.context() as patch,
        running(queues, emulator=emulator, step=lambda _: nullcontext()) as deployment,
    ):
        for name, value in deployment.endpoints.to_env().items():
            patch.setenv(name, value)
        url = deployment.endpoints.api
        client = Client.connect(NAMES.deployment, url=url, patience=Patience(attempts=20, seconds=HANG_SECONDS))
        yield Site(
            sandbox=AwsSandbox(NAMES.deployment, client=client, new_session=boto3.Session, url=url),
            aws=emulator.client,
            urls=deployment.endpoints.inbound_url.removesuffix(NAMES.inbound),
        )


@contextmanager
def another_version(site: Site, queue: str, kind: str, more: dict[str, Any]) -> Iterator[None]:
    """Let a managed policy allow more than it did."""
    iam, arn = site.aws("iam"), f"arn:aws:iam::{ACCOUNT}:policy/{NAMES.policy(queue, kind)}"
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    document = json.loads(document) if isinstance(document, str) else document
    wider = {**document, "Statement": [*document["Statement"], more]}
    # The local AWS has no SetDefaultPolicyVersion.
    for each in (wider, document):
        made = iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(each), SetAsDefault=True)
        if each is wider:
            yield
        iam.delete_policy_version(PolicyArn=arn, VersionId=version)
        version = made["PolicyVersion"]["VersionId"]


def widened_to_the_neighbour(site: Site) -> AbstractContextManager[None]:
    more = {
        "Effect": "Allow",
        "Action": "execute-api:Invoke",
        "Resource": "arn:aws:execute-api:*:*:*/GET/queues/plain*",
    }
    return another_version(site, "plain", "producer", more)


def widened_to_all(site: Site) -> AbstractContextManager[None]:
    return another_version(site, "plain", "consumer", ALL)


@contextmanager
def function_made_mighty(site: Site) -> Iterator[None]:
    role = site.aws("lambda").get_function_configuration(FunctionName=NAMES.function("tick"))["Role"].rpartition("/")[2]
    document = json.dumps({"Version": "2012-10-17", "Statement": [ALL]})
    site.aws("iam").put_role_policy(RoleName=role, PolicyName="mighty", PolicyDocument=document)
    yield
    site.aws("iam").delete_role_policy(RoleName=role, PolicyName="mighty")


def schedule_disabled(site: Site) -> AbstractContextManager[None]:
    return site.sandbox.faults.schedule_off("moved")


@contextmanager
def schedule_deleted(site: Site) -> Iterator[None]:
    scheduler, of = site.aws("scheduler"), {"GroupName": NAMES.schedule_group, "Name": "flood.3"}
    known = scheduler.get_schedule(**of)
    scheduler.delete_schedule(**of)
    yield
    kept = {name: known[name] for name in ("FlexibleTimeWindow", "ScheduleExpression", "State", "Target")}
    scheduler.create_schedule(**of, **kept)


@contextmanager
def attribute_changed(site: Site, queue: str, name: str, value: str) -> Iterator[None]:
    sqs, url = site.aws("sqs"), site.urls + queue
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={name: value})
    yield
    sqs.set_queue_attributes(QueueUrl=url, Attributes={name: before})


def redrive_policy_removed(site: Site) -> AbstractContextManager[None]:
    return attribute_changed(site, NAMES.queue("levels", 2), "RedrivePolicy", "")


def retention_shortened(site: Site) -> AbstractContextManager[None]:
    return attribute_changed(site, NAMES.queue_dlq("precise"), "MessageRetentionPeriod", "345600")


def level_deleted(site: Site) -> AbstractContextManager[None]:
    return AwsLevels(NAMES, site.aws("sqs"), url=lambda name: site.urls + name).gone("levels", 2)


@contextmanager
def table_unprotected(site: Site) -> Iterator[None]:
    site.aws("dynamodb").update_table(TableName=NAMES.state, DeletionProtectionEnabled=False)
    yield
    site.aws("dynamodb").update_table(TableName=NAMES.state, DeletionProtectionEnabled=True)


@contextmanager
def alarm_muted(site: Site) -> Iterator[None]:
    cloudwatch = site.aws("cloudwatch")
    names = sorted(each["AlarmName"] for each in cloudwatch.describe_alarms()["MetricAlarms"])
    cloudwatch.disable_alarm_actions(AlarmNames=names[:1])
    yield
    cloudwatch.enable_alarm_actions(AlarmNames=names[:1])


@contextmanager
def rewritten(site: Site, function: str, file: str, old: str, new: str) -> Iterator[None]:
    """Let a function run other code, as whoever deploys by hand would."""
    functions, of = site.aws("lambda"), {"FunctionName": NAMES.function(function)}
    live = functions.get_alias(**of, Name="live")["FunctionVersion"]
    packed = httpx.get(functions.get_function(**of, Qualifier=live)["Code"]["Location"]).content
    functions.update_function_code(**of, ZipFile=_rewritten(packed, file, old, new))
    functions.update_alias(**of, Name="live", FunctionVersion=functions.publish_version(**of)["Version"])
    yield
    functions.update_alias(**of, Name="live", FunctionVersion=live)


def _rewritten(packed: bytes, file: str, old: str, new: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as before, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            content = before.read(name)
            if name == file:
                assert content.count(old.encode()) == 1
                content = content.replace(old.encode(), new.encode())
            after.writestr(before.getinfo(name), content)
    return made.getvalue()


def delays_rounded_down(site: Site) -> AbstractContextManager[None]:
    return rewritten(site, "tick", "dueline/model/routing.py", "math.ceil(delay)", "math.floor(delay)")


def cancels_ignored(site: Site) -> AbstractContextManager[None]:
    return rewritten(site, "tick", "dueline/protocol/entries.py", "= prefix == self._settled, ", "= False, ")


def keys_forgotten(site: Site) -> AbstractContextManager[None]:
    first = "    row = table.claim("
    return rewritten(site, "api", "dueline/protocol/keys.py", first, f"    return job\n{first}")


@pytest.mark.thorough
def test_what_checks_of_aws_ask_for_is_there_though_it_is_not_judged(site: Site) -> None:
    alarms, now = site.sandbox.alarms(), site.sandbox.clock.now()
    # The local AWS keeps no alarms on expressions, as those on growth and on shares are.
    assert {*ON_FAULTS, *BY_FIGURE} - {"plain OnTime"} <= set(alarms)
    assert {"InboundDeadLetters", "levels DeadLetters"} <= set(alarms)
    for function in FUNCTIONS:
        site.sandbox.fail(function)
    site.sandbox.tell([Figure(metric="Delayed", value=7.0, at=now - timedelta(minutes=3), queue="plain")])
    of = [{"Name": "deployment", "Value": NAMES.deployment}, {"Name": "queue", "Value": "plain"}]
    span = {"StartTime": now - timedelta(minutes=5), "EndTime": now, "Period": 60, "Statistics": ["Sum"]}
    told = site.aws("cloudwatch").get_metric_statistics(
        Namespace="Dueline", MetricName="Delayed", Dimensions=of, **span
    )
    assert [point["Sum"] for point in told["Datapoints"]] == [7.0]
    used = site.sandbox.used("flood", start=now - timedelta(minutes=5), end=now)
    assert used.log_bytes >= 0


Break = Callable[[Site], AbstractContextManager[None]]
# What is done, the check that must tell of it, the figure that does, and what its notes name.
BROKEN: list[tuple[Break, str, str, str]] = [
    (
        widened_to_the_neighbour,
        "policies",
        "requests and queues: allowed",
        "producer: GET /queues/plain-vip is allowed",
    ),
    (widened_to_all, "policies", "requests and queues: allowed", "consumer: receive plain-vip is allowed"),
    (function_made_mighty, "policies", "deeds that a function may do", "tick: dynamodb:DeleteTable jobs is allowed"),
    (schedule_disabled, "settings", "schedules that do not fire", "moved.0"),
    (schedule_deleted, "settings", "schedules that do not fire", "flood.3"),
    (redrive_policy_removed, "settings", "queues without their dead-letter queue", NAMES.queue("levels", 2)),
    (retention_shortened, "settings", "dead-letter queues that forget", NAMES.queue_dlq("precise")),
    (level_deleted, "settings", "queues that are not there", NAMES.queue("levels", 2)),
    (table_unprotected, "settings", "tables that can be deleted", NAMES.state),
    (alarm_muted, "settings", "alarms that notify nobody", "dueline-verify-"),
    (delays_rounded_down, "lateness", "table: early", ""),
    (cancels_ignored, "cancels", "came though it was promised not to", ""),
    (keys_forgotten, "keys", "another payload under a key, accepted", ""),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("broken", "check", "figure", "named"), BROKEN, ids=[each[0].__name__ for each in BROKEN])
def test_what_is_broken_is_told_by_its_check_alone(
    site: Site, broken: Break, check: str, figure: str, named: str
) -> None:
    with broken(site):
        results = site.run(*QUICK, check)
    assert failed(results) == [check], results
    assert figure in results[check].why
    assert named in "; ".join(results[check].notes)
    whole = site.run(*QUICK)
    assert failed(whole) == [], whole


@pytest.mark.thorough
def test_ttl_that_is_off_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def switch(table: str, on: bool) -> None:
        of = {"Enabled": on, "AttributeName": "ttl"}
        site.aws("dynamodb").update_time_to_live(TableName=table, TimeToLiveSpecification=of)

    # The local AWS does not switch it on as the stack says, so that it is not judged there.
    monkeypatch.setattr(site.sandbox, "is_local", False)
    for table in (NAMES.table, NAMES.state, NAMES.once):
        switch(table, True)
    assert failed(site.run("settings")) == []
    switch(NAMES.table, False)
    told = site.run("settings")["settings"]
    assert told.notes == [f"tables that keep rows for ever: {NAMES.table}"]


def failed(results: dict[str, Result]) -> Sequence[str]:
    return [name for name, result in results.items() if result.verdict is Verdict.FAILED]


@pytest.mark.thorough
def test_a_queue_that_keeps_no_dead_letters_is_told_by_its_jobs_too(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as impatient, redrive_policy_removed(site):
        # What never comes is given up soon.
        impatient.setattr(trial, "_LOCAL_GRACE", timedelta(seconds=5))
        assert "did not reach the dead-letter queue" in site.run("redrive")["redrive"].why
    site.sandbox.tidy()
    assert failed(site.run("redrive")) == []
