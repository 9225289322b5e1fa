"""What `dueline doctor` shows an operator who may not look at everything, with IAM enforced."""

import json
from functools import cache
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from dueline.aws import clients
from dueline.aws.deployment_context import NEEDS
from dueline.cli import connect
from dueline.cli.app import app
from dueline.cli.operator_commands import NOT_CHECKED
from dueline.config.names import Names
from local.emulator import REGION
from tests.e2e.deployed import as_administrator
from tests.e2e.emulated_iam import as_the_emulator_takes_it, key_of

NAMES = Names("e2e")
POLICY = json.loads((Path(__file__).parents[2] / "examples" / "doctor_policy.json").read_text())
DOCUMENTED = sorted(action for statement in POLICY["Statement"] for action in statement["Action"])


@pytest.fixture(scope="module")
def doctor(emulator, endpoints):
    """Runs the doctor as an operator of emails, who has the rights that its page names, but for some."""
    iam = emulator.client("iam")
    key = key_of(emulator, "on-call", NAMES.policy("emails", "operator"))
    # Else no depth of a queue that was given up is read.
    given_up = emulator.client("sqs").create_queue(QueueName=f"{NAMES.queue_prefix}given-up")["QueueUrl"]
    session = boto3.Session(*key, region_name=REGION)

    def run(*args, denied=()):
        statements = [{"Effect": "Allow", "Action": DOCUMENTED, "Resource": "*"}]
        statements += [{"Effect": "Deny", "Action": denied, "Resource": "*"}] if denied else []
        document = as_the_emulator_takes_it({"Version": "2012-10-17", "Statement": statements})
        iam.put_user_policy(UserName="on-call", PolicyName="doctor", PolicyDocument=json.dumps(document))
        return CliRunner().invoke(app, ["doctor", *args])

    with as_administrator(emulator, "e2e"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "session", lambda _: session)
        # Clients of nine services take longer than all looks together.
        patch.setattr(clients, "client", cache(clients.client))
        yield run
    emulator.client("sqs").delete_queue(QueueUrl=given_up)


def test_operator_without_rights_gets_no_all_clear(doctor):
    result = doctor(denied=DOCUMENTED)
    assert (result.exit_code, result.stdout) == (NOT_CHECKED, "")
    assert f"needs the right {NEEDS}" in result.stderr
    assert "AccessDenied" in result.stderr


def test_documented_rights_suffice(doctor):
    result = doctor("--json")
    assert result.exit_code != NOT_CHECKED, result.output
    assert "not_looked_at" not in result.stdout
