"""What CloudFormation asks before a deployment changes or deletes a queue: whether that would strand jobs."""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws import clients, stack_answer
from dueline.aws.deployed import Deployed
from dueline.aws.stacks import Stacks
from dueline.config.settings import StrandSettings
from dueline.lookup.stranded import Shape, Strands
from dueline.model.job import MAX_RETENTION
from dueline.model.queue_settings import QueueSettings
from functions.log import log

SETTINGS = StrandSettings.from_env(os.environ)
LONGEST_REQUEST = timedelta(seconds=5)
DEPLOYED = Deployed(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)
STACKS = Stacks(clients.cloudformation(longest=LONGEST_REQUEST))
BEFORE, AFTER = "before", "after"
_CHANGED = "Put queues.yaml back, or let them be worked off first, or deploy with --context strand=yes."
_DELETED = (
    "Let them be worked off, or have the queue in queues.yaml until you have cancelled them and deleted schedules;"
    " detach the queue's policies, and delete the stack again. Or strand them: delete it with --retain-resources"
    " {resource}."
)

logger = log()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Answer a stack: a failure, with what would be stranded, or success.

    Raises Throttled or Unavailable: then Lambda invokes it again.
    """
    properties = event["ResourceProperties"]
    fault = _fault(event, properties)
    if fault:
        logger.warning("refused", extra={"queue": properties["Queue"], "reason": fault})
    stack_answer.send(event, id=f"{properties['Queue']}/{properties['When']}", fault=fault)


def _fault(event: Mapping[str, Any], properties: Mapping[str, str]) -> str | None:
    if properties["Strand"] == "yes" or not _is_asked(event, properties["When"]):
        return None
    queue = properties["Queue"]
    if event["RequestType"] == "Delete":
        found, advice = _strands(queue, _shape(properties)).by_deletion(), _DELETED
    else:
        old, new = _shape(event["OldResourceProperties"]), _shape(properties)
        found, advice = _strands(queue, old).by_change(old, new), _CHANGED
    told = f"queue {queue}: this would strand {', '.join(found)}. {advice}"
    return told.format(resource=event["LogicalResourceId"]) if found else None


def _is_asked(event: Mapping[str, Any], when: str) -> bool:
    """Tell whether an event takes something away, comes before that happens, and is no rollback, which must succeed.

    What is updated first is the guard that all others come after, what is deleted first the one that comes after them.
    """
    if (event["RequestType"], when) not in (("Update", BEFORE), ("Delete", AFTER)):
        return False
    # First: what goes back after a refusal must not depend on what AWS answers.
    if when == BEFORE and not _shape(event["OldResourceProperties"]).loses(_shape(event["ResourceProperties"])):
        return False
    status = STACKS.status(event["StackId"])
    return status == ("DELETE_IN_PROGRESS" if when == AFTER else "UPDATE_IN_PROGRESS")


def _shape(properties: Mapping[str, str]) -> Shape:
    return Shape(
        partitions=int(properties["Partitions"]),
        priorities=int(properties["Priorities"]),
        message_days=int(properties["MessageRetentionDays"]),
    )


def _strands(queue: str, shape: Shape) -> Strands:
    settings = QueueSettings(
        name=queue, partitions=shape.partitions, priorities=shape.priorities, retention=MAX_RETENTION
    )
    return Strands(
        queue=settings,
        table=DEPLOYED.table,
        level=partial(DEPLOYED.team_queue, queue),
        now=DEPLOYED.clock.now(),
        spread=DEPLOYED.spread,
    )
