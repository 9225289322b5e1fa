"""What IAM's simulator says of policies: https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_testing-policies.html"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import boto3

from dueline.aws import clients
from dueline.config.names import Names
from dueline.verify.sandbox import Call

_LONGEST_REQUEST = timedelta(seconds=20)
_OF_ROWS = {"get": "GetItem", "write": "PutItem", "query": "Query", "scan": "Scan"}
_LEADING_KEYS = "dynamodb:LeadingKeys"
Asked = Callable[..., Any]


class Simulator:
    """Asks IAM what a managed policy, or a function's role, allows in a deployment."""

    def __init__(self, names: Names, session: boto3.Session) -> None:
        self._names = names
        self._iam: Any = clients.of_service("iam", session, longest=_LONGEST_REQUEST)
        self._functions: Any = clients.of_service("lambda", session, longest=_LONGEST_REQUEST)
        account = clients.sts(session, longest=_LONGEST_REQUEST).get_caller_identity()["Account"]
        self._policies = f"arn:aws:iam::{account}:policy/"
        ssm = clients.ssm(session, longest=_LONGEST_REQUEST)
        self._api = ssm.get_parameter(Name=names.api_id_parameter)["Parameter"]["Value"]
        self._here = f"{session.region_name}:{account}"

    def of_policy(self, policy: str, queue: str) -> Callable[[Call], bool]:
        arn = self._policies + self._names.policy(queue, policy)
        version = self._iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        document = self._iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        text = document if isinstance(document, str) else json.dumps(document)
        return lambda call: self._is_allowed(self._iam.simulate_custom_policy, call, PolicyInputList=[text])

    def of_function(self, function: str) -> Callable[[Call], bool]:
        role = self._functions.get_function_configuration(FunctionName=self._names.function(function))["Role"]
        return lambda call: self._is_allowed(self._iam.simulate_principal_policy, call, PolicySourceArn=role)

    def _is_allowed(self, ask: Asked, call: Call, **of: object) -> bool:
        action, resource, keys = self._meant(call)
        answer = ask(ActionNames=[action], ResourceArns=[resource], ContextEntries=_context(keys), **of)
        return all(each["EvalDecision"] == "allowed" for each in answer["EvaluationResults"])

    def _meant(self, call: Call) -> tuple[str, str, Sequence[str]]:
        """Return the action of AWS that a call is, the ARN that it is on, and the keys of rows."""
        if call.action.isupper():
            request = f"{self._api}/$default/{call.action}{call.on}"
            return "execute-api:Invoke", f"arn:aws:execute-api:{self._here}:{request}", ()
        if call.action in _OF_ROWS:
            table, _, pk = call.on.partition(" ")
            return f"dynamodb:{_OF_ROWS[call.action]}", self._table(table), [pk] if pk else []
        if call.action in ("receive", "send"):
            name = self._names.queue(call.on) if call.action == "receive" else self._names.inbound
            return f"sqs:{call.action.capitalize()}Message", self._queue(name), ()
        return call.action, self._resource(call), ()

    def _resource(self, call: Call) -> str:
        of_service: Mapping[str, Callable[[str], str]] = {
            "dynamodb": self._table,
            "sqs": lambda queue: self._queue(self._names.queue(queue)),
        }
        return of_service.get(call.action.partition(":")[0], str)(call.on)

    def _table(self, which: str) -> str:
        name = {"jobs": self._names.table, "state": self._names.state}[which]
        return f"arn:aws:dynamodb:{self._here}:table/{name}"

    def _queue(self, name: str) -> str:
        return f"arn:aws:sqs:{self._here}:{name}"


def _context(keys: Sequence[str]) -> list[dict[str, object]]:
    return [{"ContextKeyName": _LEADING_KEYS, "ContextKeyType": "stringList", "ContextKeyValues": keys}] if keys else []
