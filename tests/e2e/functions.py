"""A team's own Lambda function, with the library beside it, and a queue as its event source."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from local.emulator import ACCOUNT, REGION, Emulator
from local.template import ROOT
from tests.e2e.emulated_iam import as_the_emulator_takes_it, document_of


def deploy_consumer(
    emulator: Emulator,
    queue_url: str,
    *,
    name: str,
    code: Path,
    beside: tuple[Path, ...] = (),
    environment: Mapping[str, str] = {},
) -> str:
    """Deploy the `handler` of a file, with the rights of the queue's consumers; return the id of its event source.

    `code` and what is `beside` it are of this repository.
    """
    functions, queue = emulator.client("lambda"), queue_url.rpartition("/")[2]
    _grant(emulator, name, policy=f"{queue}_consumer")
    functions.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler=f"{code.stem}.handler",
        Role=f"arn:aws:iam::{ACCOUNT}:role/{name}",
        Code={"ZipFile": _packed([code, *beside])},
        # On a busy machine it takes long to start.
        Timeout=60,
        Environment={"Variables": {"POWERTOOLS_SERVICE_NAME": name, **environment}},
    )
    source = functions.create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )
    return str(source["UUID"])


def _grant(emulator: Emulator, role: str, *, policy: str) -> None:
    """Make a role that has what a managed policy allows, and nothing else."""
    iam = emulator.client("iam")
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
    document = json.dumps(as_the_emulator_takes_it(document_of(iam, policy)))
    iam.put_role_policy(RoleName=role, PolicyName="consumer", PolicyDocument=document)


def _packed(files: list[Path]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in (ROOT / "dueline").rglob("*.py"):
            archive.write(source, source.relative_to(ROOT))
        for file in files:
            archive.write(ROOT / file, file.name)
    return packed.getvalue()
