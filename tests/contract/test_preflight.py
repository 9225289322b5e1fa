"""`dueline preflight`: what would be stranded, what the account lacks, and what could not be looked at."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from dueline.aws.dynamodb import DynamoTable
from dueline.aws.preflight import Preflight
from dueline.cli import connect
from dueline.cli.app import app
from dueline.config.names import Names
from dueline.core import rows
from tests.api_harness import SETTINGS
from tests.builders import a_job, a_queue, emails
from tests.contract.engines import create_table

NAMES = Names("shop")
NOW = datetime.now(UTC).replace(microsecond=0)
KEPT = "name: shop\nqueues: {emails: {partitions: 2}}\n"
REMOVED = "name: shop\n"
FEWER = "name: shop\nqueues: {emails: {partitions: 1}}"
SHORTER = "name: shop\nqueues: {emails: {partitions: 2, message_retention_days: 1}}"


def overwrite(account, parameter, content):
    account.session.client("ssm").put_parameter(Name=parameter, Value=content, Type="String", Overwrite=True)


class Account:
    """An account of moto's with these limits of Lambda, in which all of some services or operations may be `denied`."""

    def __init__(self):
        self.limit, self.denied = 1000, set()
        self.sign_in("AKIDEXAMPLE", "s")

    def sign_in(self, *credentials):
        self.session = boto3.Session(*credentials, region_name="eu-west-1")
        self.session.events.register("before-call", self._answer)

    def _answer(self, model, **_):
        if {model.service_model.service_name, model.name} & self.denied:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, model.name)
        if model.name == "GetAccountSettings":
            limits = {"ConcurrentExecutions": self.limit, "UnreservedConcurrentExecutions": self.limit}
            return SimpleNamespace(status_code=200), {"AccountLimit": limits}
        return None

    def bootstrap(self, version="30"):
        overwrite(self, "/cdk-bootstrap/hnb659fds/version", version)

    def deploy(self, queue):
        """Let a queue be deployed, as far as preflight looks."""
        ssm, sqs, dynamodb = map(self.session.client, ("ssm", "sqs", "dynamodb"))
        urls = "https://sqs.eu-west-1.amazonaws.com/123456789012/"
        settings = replace(SETTINGS, deployment="shop", queue_urls=urls)
        parameters = {NAMES.settings_parameter: asdict(settings), NAMES.queue_parameter(queue.name): queue.to_json()}
        for name, value in parameters.items():
            ssm.put_parameter(Name=name, Value=json.dumps(value), Type="String")
        for name in (NAMES.queue(queue.name), NAMES.queue_dlq(queue.name)):
            sqs.create_queue(QueueName=name, Attributes={"MessageRetentionPeriod": str(4 * 86_400)})
        for table in (NAMES.table, NAMES.state):
            create_table(dynamodb, table)


@pytest.fixture
def account(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with mock_aws():
        account = Account()
        account.bootstrap()
        monkeypatch.setattr(connect, "preflight", lambda _, **its: Preflight(session=account.session, **its))
        yield account


@pytest.fixture
def run(account, tmp_path):
    def run(text=KEPT, *args):
        (tmp_path / "queues.yaml").write_text(text)
        return CliRunner().invoke(app, ["preflight", "queues.yaml", *args])

    return run


def put_job(account):
    job = a_job(partition=emails(1), due=NOW + timedelta(days=3))
    DynamoTable(account.session.client("dynamodb"), NAMES.table, state=NAMES.state).write([rows.job_row(job)])


def queue_of(account):
    return account.session.resource("sqs").get_queue_by_name(QueueName=NAMES.queue("emails"))


def put_message(account):
    queue_of(account).send_message(MessageBody="{}")


def test_first_deployment_is_all_clear(run):
    done = run()
    assert (done.exit_code, done.stdout) == (
        0,
        "everything was checked: no problem with deploying queues.yaml\n",
    ), done.output


@pytest.mark.parametrize(
    ("text", "what", "strand"),
    [
        (REMOVED, "removed in queues.yaml, which would strand 1 job", put_job),
        (FEWER, "changed in queues.yaml, which would strand 1 job in partitions from 1 on", put_job),
        (SHORTER, "changed in queues.yaml, which would strand 1 message in its SQS queues", put_message),
    ],
)
def test_stranded_jobs_are_a_problem(account, run, text, what, strand):
    account.deploy(a_queue(partitions=2))
    before = run(text)
    assert before.exit_code == 0, before.output
    strand(account)
    done = run(text)
    assert done.exit_code == 1
    assert f"queue emails: {what}" in done.stdout
    assert "Do: put it back" in done.stdout
    assert run(KEPT).exit_code == 0


def test_missing_queue_has_nothing_to_strand(account, run):
    account.deploy(a_queue(partitions=2))
    queue_of(account).delete()
    assert run(SHORTER).exit_code == 0


@pytest.mark.parametrize(
    ("change", "text", "what"),
    [
        ({"version": "5"}, KEPT, "CDK: the bootstrap stack has version 5: it must be at least 6"),
        ({"version": None}, KEPT, "CDK: this account and region are not bootstrapped"),
        ({"limit": 10}, KEPT, "Lambda: of 10 concurrent executions, 10 would be left"),
        (
            {"limit": 150},
            "tick_reserved_concurrency: 60\n" + KEPT,
            "90 would be left for all functions after",
        ),
        ({"expires": timedelta(minutes=20)}, KEPT, "credentials: they end within 30 minutes"),
    ],
)
def test_account_shortcoming_is_a_problem(account, run, monkeypatch, change, text, what):
    let_be(account, monkeypatch, **change)
    done = run(text)
    assert done.exit_code == 1, done.output
    [line, _] = done.stdout.splitlines()
    assert what in line
    assert ". Do: " in line


def let_be(account, monkeypatch, *, version="30", limit=1000, expires=None):
    account.bootstrap(version or "30")
    if version is None:
        account.session.client("ssm").delete_parameter(Name="/cdk-bootstrap/hnb659fds/version")
    account.limit = limit
    if expires:
        environment(account, monkeypatch, AWS_CREDENTIAL_EXPIRATION=(NOW + expires).isoformat())


def environment(account, monkeypatch, **more):
    """Let temporary credentials be those of the environment."""
    environment = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t", **more}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    account.sign_in()


def test_unknown_credential_expiry_is_not_ok(account, run, monkeypatch):
    environment(account, monkeypatch)
    done = run()
    assert done.exit_code == 6
    assert (
        "NOT SEEN  credentials: not checked\n          these credentials are temporary, and do not say when they end"
        in done.stdout
    )
    assert "no known problem with deploying queues.yaml, but not everything could be checked" in done.stdout


def test_odd_answer_hides_no_other_problem(account, run, monkeypatch):
    let_be(account, monkeypatch, limit=10, version="v30")
    done = run()
    assert (done.exit_code, "PROBLEM   Lambda" in done.stdout, "ValueError" in done.stdout) == (1, True, True)


def test_denied_permission_is_not_ok(account, run):
    account.denied = {"lambda"}
    done = run()
    assert done.exit_code == 6
    assert "needs the right lambda:GetAccountSettings" in done.stdout
    lines = [json.loads(line) for line in run(KEPT, "--json").stdout.splitlines()]
    assert [line["needs"].partition(",")[0] for line in lines] == ["lambda:GetAccountSettings"]


UNREAD = "deployment: what is deployed could not be read:"


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (
            lambda account: overwrite(account, NAMES.settings_parameter, "{"),
            f"{UNREAD} parameter {NAMES.settings_parameter}",
        ),
        (lambda account: overwrite(account, NAMES.queue_parameter("broken"), "null"), f"{UNREAD} parameter"),
        (lambda account: account.denied.add("GetParametersByPath"), UNREAD),
        (
            lambda account: account.session.client("dynamodb").delete_table(TableName=NAMES.state),
            "queue emails: whether jobs would be stranded could not be read",
        ),
    ],
    ids=["settings", "a queue", "denied", "table"],
)
def test_what_cannot_be_read_is_a_problem(account, run, spoil, what):
    """It may be jobs: it must not pass for an all-clear."""
    account.deploy(a_queue(partitions=2))
    spoil(account)
    done = run(REMOVED)
    assert (done.exit_code, f"PROBLEM   {what}" in done.stdout) == (1, True), done.stdout
