"""Faults: what a sandbox rests on, broken and mended again. Whatever is broken is mended by its name alone, too."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dueline.aws import clients
from dueline.aws.sandbox.levels import AwsLevels
from dueline.config.names import Names

if TYPE_CHECKING:
    from boto3 import Session

_LONGEST_REQUEST = timedelta(seconds=20)
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_OnDemandThroughput.html
_NO_LIMIT = -1
_LOOKS = {"Delay": 2, "MaxAttempts": 150}
_POLICY = "dueline-verify"
_WRITES = ("BatchWriteItem", "PutItem", "UpdateItem")
_FUNCTIONS = ("api", "ingest", "planner", "tick", "ttl")
# What update_schedule takes of what get_schedule tells: it keeps nothing that it is not told again.
_OF_A_SCHEDULE = (
    "Description",
    "FlexibleTimeWindow",
    "GroupName",
    "Name",
    "ScheduleExpression",
    "ScheduleExpressionTimezone",
    "Target",
)


class AwsFaults:
    """The faults of a deployment. `url` returns the URL of an SQS queue."""

    def __init__(self, names: Names, session: "Session", *, url: Callable[[str], str]) -> None:
        self._names = names
        self._levels = AwsLevels(names, clients.sqs(session, longest=_LONGEST_REQUEST), url=url)
        self._scheduler = clients.of_service("scheduler", session, longest=_LONGEST_REQUEST)
        self._functions = clients.of_service("lambda", session, longest=_LONGEST_REQUEST)
        self._dynamodb = clients.of_service("dynamodb", session, longest=_LONGEST_REQUEST)
        self._iam = clients.of_service("iam", session, longest=_LONGEST_REQUEST)

    @contextmanager
    def schedule_off(self, queue: str) -> Iterator[None]:
        try:
            self._set_schedules("DISABLED", prefix=f"{queue}.")
            yield
        finally:
            self._set_schedules("ENABLED", prefix=f"{queue}.")

    @contextmanager
    def stopped(self, function: str) -> Iterator[None]:
        name = self._names.function(function)
        try:
            self._functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
            yield
        finally:
            self._functions.delete_function_concurrency(FunctionName=name)

    @contextmanager
    def table_denied(self, *functions: str) -> Iterator[None]:
        actions = [f"dynamodb:{each}" for each in _WRITES]
        table = f"arn:aws:dynamodb:*:*:table/{self._names.table}"
        with self._denied({"Effect": "Deny", "Action": actions, "Resource": table}, *functions):
            yield

    @contextmanager
    def schedules_hidden(self) -> Iterator[None]:
        with self._denied({"Effect": "Deny", "Action": "scheduler:ListSchedules", "Resource": "*"}, "ttl"):
            yield

    @contextmanager
    def throttled(self) -> Iterator[None]:
        try:
            self._limit_writes(1)
            yield
        finally:
            self._limit_writes(_NO_LIMIT)

    def level_gone(self, queue: str, priority: int) -> AbstractContextManager[None]:
        return self._levels.gone(queue, priority)

    def mend(self) -> None:
        """Mend whatever was broken, by whichever run."""
        self._set_schedules("ENABLED", prefix="")
        for function in _FUNCTIONS:
            self._functions.delete_function_concurrency(FunctionName=self._names.function(function))
            self._allow_again(self._role_of(function))
        self._limit_writes(_NO_LIMIT)
        self._levels.mend()

    @contextmanager
    def _denied(self, statement: dict[str, object], *functions: str) -> Iterator[None]:
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        try:
            for role in map(self._role_of, functions):
                self._iam.put_role_policy(RoleName=role, PolicyName=_POLICY, PolicyDocument=document)
            yield
        finally:
            for role in map(self._role_of, functions):
                self._allow_again(role)

    def _set_schedules(self, state: str, *, prefix: str) -> None:
        pages = self._scheduler.get_paginator("list_schedules").paginate(GroupName=self._names.schedule_group)
        for listed in (schedule for page in pages for schedule in page["Schedules"]):
            if listed["Name"].startswith(prefix) and listed["State"] != state:
                known = self._scheduler.get_schedule(GroupName=self._names.schedule_group, Name=listed["Name"])
                kept = {name: known[name] for name in _OF_A_SCHEDULE if known.get(name)}
                self._scheduler.update_schedule(**kept, State=state)

    def _limit_writes(self, units: int) -> None:
        """Limit what a table that is paid by request takes a second, unless it is limited so."""
        name, waiter = self._names.table, self._dynamodb.get_waiter("table_exists")
        throughput = self._dynamodb.describe_table(TableName=name)["Table"].get("OnDemandThroughput", {})
        if throughput.get("MaxWriteRequestUnits", _NO_LIMIT) == units:
            return
        self._dynamodb.update_table(TableName=name, OnDemandThroughput={"MaxWriteRequestUnits": units})
        waiter.wait(TableName=name, WaiterConfig=_LOOKS)

    def _allow_again(self, role: str) -> None:
        with suppress(self._iam.exceptions.NoSuchEntityException):
            self._iam.delete_role_policy(RoleName=role, PolicyName=_POLICY)

    def _role_of(self, function: str) -> str:
        configuration: Any = self._functions.get_function_configuration(FunctionName=self._names.function(function))
        return str(configuration["Role"]).rpartition("/")[2]
