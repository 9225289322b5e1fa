"""Holders: roles that have one managed policy and nothing else, and what they may do."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import boto3
from botocore.exceptions import ClientError

from dueline.aws import clients, gateway
from dueline.config.names import Names
from dueline.verify.sandbox import Answer, Call

_LONGEST_REQUEST = timedelta(seconds=20)
# IAM tells all of AWS of a change within seconds, and promises no more.
_KNOWN_AFTER_SECONDS = 20.0
_DENIED = ("AccessDenied", "AccessDeniedException", "AWS.SimpleQueueService.AccessDenied")
_SORT_KEY = "verify"


class Holders:
    """Makes a role for a policy, and takes it away again. `url` is that of the HTTP API."""

    def __init__(self, names: Names, session: boto3.Session, *, url: str, queue_url: Callable[[str], str]) -> None:
        self._names, self._session, self._url, self._queue_url = names, session, url, queue_url
        self._iam = clients.of_service("iam", session, longest=_LONGEST_REQUEST)
        self._sts = clients.sts(session, longest=_LONGEST_REQUEST)

    @contextmanager
    def holding(self, policy: str, queue: str) -> Iterator[Callable[[Call], bool]]:
        """Yield what tells whether a role with one policy of a queue may do something, by doing it."""
        account, role = self._sts.get_caller_identity()["Account"], self._role(policy)
        name = getattr(self._names, f"{policy}_policy")(queue)
        try:
            trusted = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": account}}
            document = json.dumps({"Version": "2012-10-17", "Statement": [trusted]})
            made = self._iam.create_role(RoleName=role, AssumeRolePolicyDocument=document)
            self._iam.attach_role_policy(RoleName=role, PolicyArn=f"arn:aws:iam::{account}:policy/{name}")
            time.sleep(_KNOWN_AFTER_SECONDS)
            session = self._assumed(made["Role"]["Arn"])
            yield Holder(self._names, session, url=self._url, queue_url=self._queue_url).may
        finally:
            self.remove(policy)

    def remove(self, policy: str) -> None:
        """Take away the role of a policy, if there is one."""
        role = self._role(policy)
        with suppress(self._iam.exceptions.NoSuchEntityException):
            for attached in self._iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
                self._iam.detach_role_policy(RoleName=role, PolicyArn=attached["PolicyArn"])
            self._iam.delete_role(RoleName=role)

    def _role(self, policy: str) -> str:
        return f"{self._names.deployment}-holds-{policy}"

    def _assumed(self, arn: str) -> boto3.Session:
        given = self._sts.assume_role(RoleArn=arn, RoleSessionName="dueline-verify")["Credentials"]
        return boto3.Session(
            given["AccessKeyId"],
            given["SecretAccessKey"],
            given["SessionToken"],
            region_name=self._session.region_name,
        )


class Holder:
    """What the credentials of a session may do."""

    def __init__(self, names: Names, session: boto3.Session, *, url: str, queue_url: Callable[[str], str]) -> None:
        self._names, self._queue_url = names, queue_url
        self._way = gateway.connect(names.deployment, url=url, session=session, lanes=1)
        self._dynamodb: Any = clients.dynamodb(session, longest=_LONGEST_REQUEST)
        self._sqs: Any = clients.sqs(session, longest=_LONGEST_REQUEST)

    def may(self, call: Call) -> bool:
        """Do it; tell whether it was allowed. Raises ClientError for what is neither."""
        if call.action.isupper():
            return is_allowed(self._asked(call), must_succeed=call.must_succeed)
        try:
            self._done(call)
        except ClientError as error:
            if error.response["Error"].get("Code") in _DENIED:
                return False
            raise
        return True

    def _asked(self, call: Call) -> Answer:
        body = None if call.body is None else json.dumps(call.body)
        return answer_of(self._way.send(call.action, call.on, body, headers={}))

    def _done(self, call: Call) -> object:
        if call.action == "receive":
            url = self._queue_url(self._names.queue(call.on))
            return self._sqs.receive_message(QueueUrl=url, WaitTimeSeconds=0, VisibilityTimeout=0)
        if call.action == "send":
            url = self._queue_url(self._names.inbound)
            return self._sqs.send_message(QueueUrl=url, MessageBody="from nobody who may")
        table, _, pk = call.on.partition(" ")
        name = {"jobs": self._names.table, "state": self._names.state}[table]
        return self._on_rows(call.action, name, {"S": pk})

    def _on_rows(self, action: str, table: str, pk: Mapping[str, str]) -> object:
        key = {"pk": pk, "sk": {"S": _SORT_KEY}}
        if action == "get":
            return self._dynamodb.get_item(TableName=table, Key=key)
        if action == "write":
            # Beyond every due time, so that no tick reads it, and past its time: DynamoDB deletes it.
            return self._dynamodb.put_item(TableName=table, Item={**key, "ttl": {"N": str(int(time.time()))}})
        if action == "query":
            given = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": pk}}
            return self._dynamodb.query(TableName=table, Limit=1, **given)
        return self._dynamodb.scan(TableName=table, Limit=1)


def is_allowed(answer: Answer, *, must_succeed: bool = False) -> bool:
    """Tell whether IAM let a request pass: what Dueline itself refuses has a code, and API Gateway's own has none.

    >>> [is_allowed(Answer(status=s, content=c)) for s, c in ((201, {}), (404, {"code": "job_not_found"}), (403, {}))]
    [True, True, False]
    """
    code = answer.content.get("code") if isinstance(answer.content, dict) else None
    passed = code is not None and code != "route_not_found" and not must_succeed
    return 200 <= answer.status < 300 or passed


def answer_of(answer: Any) -> Answer:
    """Return an answer of the API; what is no JSON has no content."""
    try:
        return Answer(status=answer.status, content=json.loads(answer.body))
    except ValueError:
        return Answer(status=answer.status)
