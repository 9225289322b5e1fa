"""What a deployment rests on, broken while a context is open."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dueline.config.names import Names

FUNCTIONS = ("api", "ingest", "planner", "tick", "watch")
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_OnDemandThroughput.html
_NO_LIMIT = -1
_LOOKS = {"Delay": 2, "MaxAttempts": 150}
_POLICY = "dueline-verify"
_WRITES = [f"dynamodb:{each}" for each in ("BatchWriteItem", "PutItem", "UpdateItem")]
# What a queue is made with; the rest of its attributes are counts, and names of its own.
_OF_A_QUEUE = ("MessageRetentionPeriod", "RedriveAllowPolicy", "SqsManagedSseEnabled", "VisibilityTimeout")
# SQS makes no queue of a name that was deleted within a minute.
_TRIES, _WAIT_SECONDS = 20, 5.0


class Faults:
    """The faults of a deployment; `aws` makes clients of AWS's services."""

    def __init__(self, names: Names, aws: Callable[[str], Any]) -> None:
        self._names, self._aws = names, aws

    @contextmanager
    def stopped(self, function: str) -> Iterator[None]:
        """Let no invocation of a function begin: each is throttled."""
        functions, name = self._aws("lambda"), self._names.function(function)
        try:
            functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
            yield
        finally:
            functions.delete_function_concurrency(FunctionName=name)

    @contextmanager
    def table_denied(self, *functions: str) -> Iterator[None]:
        """Deny functions to write the table of jobs."""
        with self._denied(_WRITES, f"arn:aws:dynamodb:*:*:table/{self._names.table}", *functions):
            yield

    @contextmanager
    def table_throttled(self) -> Iterator[None]:
        """Let the table of jobs take a write a second and no more."""
        try:
            self._limit_writes(1)
            yield
        finally:
            self._limit_writes(_NO_LIMIT)

    @contextmanager
    def level_gone(self, queue: str, priority: int) -> Iterator[None]:
        """Delete the SQS queue of a priority, and all that is in it; make it again as that of the first priority is."""
        sqs = self._aws("sqs")
        try:
            sqs.delete_queue(QueueUrl=self._url(self._names.queue(queue, priority)))
            yield
        finally:
            self._make_level(queue, priority)

    def mend_functions(self) -> None:
        """Mend what a run that was killed left of functions, without which their roles are not removed."""
        functions = self._aws("lambda")
        for function in FUNCTIONS:
            with suppress(functions.exceptions.ResourceNotFoundException):
                self._allow_again(self._role_of(function))
                functions.delete_function_concurrency(FunctionName=self._names.function(function))

    @contextmanager
    def _denied(self, actions: list[str], resource: str, *functions: str) -> Iterator[None]:
        statement = {"Effect": "Deny", "Action": actions, "Resource": resource}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        roles = list(map(self._role_of, functions))
        try:
            for role in roles:
                self._aws("iam").put_role_policy(RoleName=role, PolicyName=_POLICY, PolicyDocument=document)
            yield
        finally:
            for role in roles:
                self._allow_again(role)

    def _allow_again(self, role: str) -> None:
        iam = self._aws("iam")
        with suppress(iam.exceptions.NoSuchEntityException):
            iam.delete_role_policy(RoleName=role, PolicyName=_POLICY)

    def _role_of(self, function: str) -> str:
        configuration = self._aws("lambda").get_function_configuration(FunctionName=self._names.function(function))
        return str(configuration["Role"]).rpartition("/")[2]

    def _limit_writes(self, units: int) -> None:
        dynamodb, table = self._aws("dynamodb"), self._names.table
        limits = dynamodb.describe_table(TableName=table)["Table"].get("OnDemandThroughput", {})
        if limits.get("MaxWriteRequestUnits", _NO_LIMIT) != units:
            dynamodb.update_table(TableName=table, OnDemandThroughput={"MaxWriteRequestUnits": units})
            dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig=_LOOKS)

    def _make_level(self, queue: str, priority: int) -> None:
        """Make a level, though it may seem to be there: SQS lists a queue for a while after it was deleted."""
        sqs, first, name = self._aws("sqs"), self._names.queue(queue), self._names.queue(queue, priority)
        source = sqs.get_queue_attributes(QueueUrl=self._url(first), AttributeNames=["All"])["Attributes"]
        attributes = {each: source[each] for each in (*_OF_A_QUEUE, "RedrivePolicy") if each in source}
        if "Policy" in source:
            attributes["Policy"] = source["Policy"].replace(f':{first}"', f':{name}"')
        for left in reversed(range(_TRIES)):
            try:
                sqs.create_queue(QueueName=name, Attributes=attributes)
                return
            except sqs.exceptions.QueueNameExists:
                return
            except sqs.exceptions.QueueDeletedRecently:
                if not left:
                    raise
                time.sleep(_WAIT_SECONDS)

    def _url(self, name: str) -> str:
        return str(self._aws("sqs").get_queue_url(QueueName=name)["QueueUrl"])
