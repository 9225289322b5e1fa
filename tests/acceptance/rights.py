"""Roles that have one managed policy and nothing else, and requests that are signed with what they are given."""

import json
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import boto3
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from dueline.config.names import Names
from tests.e2e.emulated_iam import as_the_emulator_takes_it, document_of

# IAM informs all of AWS of a change within seconds, and promises no more.
_KNOWN_AFTER_SECONDS = 20.0
KINDS = ("producer", "consumer", "operator", "direct")


class SigV4(httpx.Auth):
    """Signs each request, as IAM authorization on the API wants it."""

    requires_request_body = True

    def __init__(self, session: boto3.Session) -> None:
        self._session = session

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        unsigned = AWSRequest(method=request.method, url=str(request.url), data=request.content)
        credentials = self._session.get_credentials()
        assert credentials, "there are no AWS credentials"
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", self._session.region_name).add_auth(unsigned)
        request.headers.update(dict(unsigned.headers))
        yield request


def role_name(names: Names, kind: str) -> str:
    return f"{names.deployment}-holds-{kind}"


@contextmanager
def role_with(names: Names, kind: str, queue: str, session: boto3.Session, *, is_aws: bool) -> Iterator[boto3.Session]:
    """Make a role for a queue's policy of a kind, and yield its credentials; the role is removed afterwards."""
    iam, sts, role = session.client("iam"), session.client("sts"), role_name(names, kind)
    account = sts.get_caller_identity()["Account"]
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": account}}
    remove_role(iam, role)
    try:
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        arn = iam.create_role(RoleName=role, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        policy = names.policy(queue, kind)
        iam.attach_role_policy(RoleName=role, PolicyArn=f"arn:aws:iam::{account}:policy/{policy}")
        if is_aws:
            time.sleep(_KNOWN_AFTER_SECONDS)
        else:
            local = json.dumps(as_the_emulator_takes_it(document_of(iam, policy)))
            iam.put_role_policy(RoleName=role, PolicyName="local", PolicyDocument=local)
        credentials = sts.assume_role(RoleArn=arn, RoleSessionName="acceptance")["Credentials"]
        yield boto3.Session(
            credentials["AccessKeyId"],
            credentials["SecretAccessKey"],
            credentials["SessionToken"],
            region_name=session.region_name,
        )
    finally:
        remove_role(iam, role)


def remove_role(iam: Any, role: str) -> None:
    with suppress(iam.exceptions.NoSuchEntityException):
        for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
            iam.delete_role_policy(RoleName=role, PolicyName=name)
        iam.delete_role(RoleName=role)
