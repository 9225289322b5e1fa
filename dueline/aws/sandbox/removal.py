"""Removal: the stacks of a sandbox, and all that outlives them, by its name. No other deployment is removed so."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, WaiterError

from dueline.aws import clients
from dueline.config.names import STRAND_GUARD, Names
from dueline.verify.sandbox import QUEUES

if TYPE_CHECKING:
    from boto3 import Session

_LONGEST_REQUEST = timedelta(seconds=30)
_MISSING = ("404", "NoSuchBucket", "ResourceNotFoundException", "ValidationError")
_SERVICES = ("cloudformation", "dynamodb", "logs", "s3", "scheduler", "sqs")
_LOOKS = {"Delay": 5, "MaxAttempts": 720}
Step = Callable[[], object]


class Removal:
    """Removes a sandbox. `tell` is told what is being removed."""

    def __init__(self, names: Names, session: "Session", *, tell: Callable[[str], None]) -> None:
        self._names, self._tell = names, tell
        self._of: dict[str, Any] = {
            service: clients.of_service(service, session, longest=_LONGEST_REQUEST) for service in _SERVICES
        }
        account = clients.sts(session, longest=_LONGEST_REQUEST).get_caller_identity()["Account"]
        self._bucket = names.payloads(account=account, region=str(session.region_name))

    def run(self) -> list[str]:
        """Remove it; return the names of what is left, which AWS may take a minute to delete."""
        # A queue's stack comes after the core's, and goes before it.
        stacks = [*map(self._names.queue_stack, QUEUES), self._names.core_stack]
        for what, step in [*((f"stack {stack}", self._stack(stack)) for stack in stacks), *self._rest()]:
            self._tell(what)
            _unless_missing(step)
        return sorted(self.left())

    def left(self) -> Iterator[str]:
        """Yield the name of each stack, queue, table, bucket, log group and group of schedules that is still there."""
        yield from (stack["StackName"] for stack in self._stacks())
        yield from (url.rpartition("/")[2] for url in self._queues())
        yield from self._tables()
        yield from (group["logGroupName"] for group in self._log_groups())
        if _unless_missing(lambda: self._of["s3"].head_bucket(Bucket=self._bucket)):
            yield self._bucket
        group = self._names.schedule_group
        known = _unless_missing(lambda: self._of["scheduler"].get_schedule_group(Name=group))
        if known and known["State"] == "ACTIVE":
            yield group

    def _rest(self) -> Iterator[tuple[str, Step]]:
        group = self._names.schedule_group
        yield "schedules", lambda: self._of["scheduler"].delete_schedule_group(Name=group)
        yield "queues", lambda: [self._of["sqs"].delete_queue(QueueUrl=url) for url in list(self._queues())]
        yield "tables", self._delete_tables
        yield "payloads", self._delete_bucket
        yield "logs", lambda: [self._of["logs"].delete_log_group(**_named(each)) for each in list(self._log_groups())]

    def _stack(self, name: str) -> Step:
        def delete(**more: Any) -> None:
            self._of["cloudformation"].delete_stack(StackName=name, **more)
            self._of["cloudformation"].get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig=_LOOKS)

        def delete_with_all_jobs() -> None:
            try:
                delete()
            except WaiterError:
                # Of a run that was killed there are jobs, which nobody wants.
                if not (guards := self._refusing(name)):
                    raise
                delete(RetainResources=guards)

        return delete_with_all_jobs

    def _refusing(self, stack: str) -> list[str]:
        """Return the guards that kept a stack from being deleted."""
        found = self._of["cloudformation"].describe_stack_resources(StackName=stack)["StackResources"]
        failed = [each for each in found if each["ResourceStatus"] == "DELETE_FAILED"]
        return [each["LogicalResourceId"] for each in failed if each["ResourceType"] == STRAND_GUARD]

    def _delete_tables(self) -> None:
        dynamodb = self._of["dynamodb"]
        for name in list(self._tables()):
            dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
            dynamodb.get_waiter("table_exists").wait(TableName=name)
            dynamodb.delete_table(TableName=name)
            dynamodb.get_waiter("table_not_exists").wait(TableName=name)

    def _delete_bucket(self) -> None:
        s3 = self._of["s3"]
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
            keys = [{"Key": each["Key"]} for each in page.get("Contents", [])]
            if keys:
                s3.delete_objects(Bucket=self._bucket, Delete={"Objects": keys})
        s3.delete_bucket(Bucket=self._bucket)

    def _stacks(self) -> Iterator[Any]:
        ours = {*map(self._names.queue_stack, QUEUES), self._names.core_stack}
        for page in self._of["cloudformation"].get_paginator("describe_stacks").paginate():
            yield from (stack for stack in page["Stacks"] if stack["StackName"] in ours)

    def _queues(self) -> Iterator[str]:
        for prefix in (self._names.queue_prefix, f"{self._names.deployment}-"):
            for page in self._of["sqs"].get_paginator("list_queues").paginate(QueueNamePrefix=prefix):
                yield from page.get("QueueUrls", [])

    def _tables(self) -> Iterator[str]:
        describe = self._of["dynamodb"].describe_table
        for name in (self._names.table, self._names.state, self._names.once):
            if _unless_missing(partial(describe, TableName=name)):
                yield name

    def _log_groups(self) -> Iterator[Any]:
        # Lambda makes a group anew for what a function writes after its own is gone.
        for prefix in (self._names.function_log(""), self._names.access_log):
            for page in self._of["logs"].get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix):
                yield from page["logGroups"]


def _named(group: Any) -> dict[str, str]:
    return {"logGroupName": group["logGroupName"]}


def _unless_missing(step: Callable[[], Any]) -> Any:
    """Do something; return nothing where what it is about is not there."""
    try:
        return step()
    except ClientError as error:
        if error.response["Error"].get("Code") in _MISSING:
            return None
        raise
