"""Adoption: have CloudFormation take over what a stack left behind, so that it can be deployed again.

What a stack retains still has its name, and CloudFormation refuses to create it. What holds something is imported: SQS
queues by their URLs, all else by its name. A tick's schedule holds nothing: it is deleted, and the deployment makes it
anew.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, WaiterError

from dueline.aws.faults import of_callers
from dueline.aws.retained import Retained
from dueline.errors import InvalidJob

_SCHEDULE = "AWS::Scheduler::Schedule"
_CHANGE_SET = "dueline-adopt-"
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
_MOST_CHARACTERS = 51_200
_LOOKS = {"Delay": 2, "MaxAttempts": 300}

# A stack whose creation failed has nothing, can only be deleted, and has its template told.
_NEVER_MADE = "ROLLBACK_COMPLETE"
# CloudFormation tells the template of a stack for a while after it is gone.
_NOT_THERE = (_NEVER_MADE, "DELETE_COMPLETE", "REVIEW_IN_PROGRESS")
# CloudFormation lets nobody change such a stack any more, nor import into it.
_TO_BE_DELETED = ("DELETE_FAILED", "ROLLBACK_FAILED")

Template = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Adoption:
    """What a stack is to take over, as an import names it, and schedules to be made anew: their groups and names.

    `template` is what the stack has once that is in it. One that `was_never_made` is deleted before.
    """

    stack: str
    template: Template
    imports: Sequence[dict[str, Any]]
    schedules: Sequence[tuple[str, str]]
    was_never_made: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopter:
    """Looks for what a stack left behind, and has it taken over. `client` makes boto3's clients by service."""

    client: Callable[[str], Any]

    def plan(self, stack: str, synthesized: Template) -> Adoption:
        """Return what is there of a synthesized template's resources that its stack does not have.

        Raises InvalidJob where it cannot be imported, Forbidden, Throttled or Unavailable.
        """
        with of_callers(f"looking for what stack {stack} left"):
            status, there = self._deployed(stack)
            new = {id: each for id, each in synthesized["Resources"].items() if id not in there.get("Resources", {})}
            imports = list(Retained(client=self.client).among(new))
            schedules = [each for each in _schedules(new) if self._is_scheduled(*each)]
        return Adoption(
            stack=stack,
            template=_with(there, new, imports),
            imports=imports,
            schedules=schedules,
            was_never_made=status == _NEVER_MADE,
        )

    def carry_out(self, adoption: Adoption) -> None:
        """Import, then delete the schedules. What was done is not planned again. Raises as `plan` does."""
        with of_callers(f"importing into stack {adoption.stack}"):
            if adoption.imports:
                with _told(adoption.stack):
                    self._delete_if_never_made(adoption)
                    self._import(adoption)
            for group, name in adoption.schedules:
                self.client("scheduler").delete_schedule(GroupName=group, Name=name)

    def _delete_if_never_made(self, adoption: Adoption) -> None:
        if adoption.was_never_made:
            cloudformation = self.client("cloudformation")
            cloudformation.delete_stack(StackName=adoption.stack)
            cloudformation.get_waiter("stack_delete_complete").wait(StackName=adoption.stack, WaiterConfig=_LOOKS)

    def _import(self, adoption: Adoption) -> None:
        # A name of its own each time: a change set that failed keeps its name.
        cloudformation, name = self.client("cloudformation"), f"{_CHANGE_SET}{uuid.uuid4()}"
        named = {"StackName": adoption.stack, "ChangeSetName": name}
        cloudformation.create_change_set(
            **named,
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps(adoption.template, separators=(",", ":")),
            ResourcesToImport=adoption.imports,
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        cloudformation.get_waiter("change_set_create_complete").wait(**named, WaiterConfig=_LOOKS)
        cloudformation.execute_change_set(**named)
        cloudformation.get_waiter("stack_import_complete").wait(StackName=adoption.stack, WaiterConfig=_LOOKS)

    def _deployed(self, stack: str) -> tuple[str, Template]:
        """Return the status of a stack and the template of what is there of it."""
        cloudformation = self.client("cloudformation")
        try:
            [there] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            return "", {}
        if there["StackStatus"] in _NOT_THERE:
            return there["StackStatus"], {}
        if there["StackStatus"] in _TO_BE_DELETED:
            only = f"stack {stack} is {there['StackStatus']}, so it can only be deleted"
            raise InvalidJob(f"{only}: do so, with --retain-resources for what refuses to go, and come back")
        body = cloudformation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
        deployed: Template = json.loads(body) if isinstance(body, str) else body
        return there["StackStatus"], deployed

    def _is_scheduled(self, group: str, name: str) -> bool:
        scheduler = self.client("scheduler")
        try:
            return bool(scheduler.get_schedule(GroupName=group, Name=name))
        except scheduler.exceptions.ResourceNotFoundException:
            return False


@contextmanager
def _told(stack: str) -> Iterator[None]:
    """Raise InvalidJob, with CloudFormation's reason, where what was waited for failed."""
    try:
        yield
    except WaiterError as error:
        raise InvalidJob(f"stack {stack} could not import: {_reason(error)}") from error


def _schedules(resources: Template) -> list[tuple[str, str]]:
    of_type = [each["Properties"] for each in resources.values() if each["Type"] == _SCHEDULE]
    return [(str(each["GroupName"]), str(each["Name"])) for each in of_type]


def _with(there: Template, new: Template, imports: Sequence[Mapping[str, Any]]) -> Template:
    """Return a template with what is imported and nothing else that is new: an import allows no more."""
    ids = [each["LogicalResourceId"] for each in imports]
    resources = {**there.get("Resources", {}), **{id: dict(new[id]) for id in ids}}
    for id in ids:
        # The rest comes with the deployment, and what it depends on.
        resources[id].pop("DependsOn", None)
        if needed := set(_references(resources[id])) - resources.keys():
            raise InvalidJob(f"{id} cannot be imported: it refers to {', '.join(sorted(needed))}, which is not there")
    template = {**there, "Resources": resources}
    size = len(json.dumps(template, separators=(",", ":")))
    if ids and size > _MOST_CHARACTERS:
        named = json.dumps({each["LogicalResourceId"]: each["ResourceIdentifier"] for each in imports})
        raise InvalidJob(
            f"the stack's template has {size:,} characters: a request takes {_MOST_CHARACTERS:,}. Use `cdk import"
            f" --resource-mapping` with a file that holds {named}"
        )
    return template


def _references(value: Any) -> Iterator[str]:
    """Yield what a resource refers to, but for AWS's own."""
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in ("Ref", "Fn::GetAtt"):
                target = str(each[0] if isinstance(each, list) else each).partition(".")[0]
                if not target.startswith("AWS::"):
                    yield target
            else:
                yield from _references(each)


def _reason(error: WaiterError) -> str:
    answer: Any = error.last_response
    told = answer.get("StatusReason") or str([each.get("StackStatus") for each in answer.get("Stacks", [])])
    return f"{error}: {told}"
