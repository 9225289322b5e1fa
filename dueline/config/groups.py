"""Groups of queues, of which each has one policy for all its queues, validated."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from dueline.config.yaml_file import none_is_empty
from dueline.model.job import QUEUE_NAME

QueueName = Annotated[str, Field(pattern=f"^{QUEUE_NAME}$")]
Groups = Annotated[
    dict[QueueName, Annotated[list[QueueName], Field(min_length=1)]],
    BeforeValidator(none_is_empty),
    Field(
        json_schema_extra={"additionalProperties": False},
        description="Groups of queues, by name, each a list of queues: with one policy for all queues of a group.",
    ),
]


def check_groups(groups: Mapping[str, Sequence[str]], *, queues: Collection[str]) -> None:
    """Raise ValueError for a group with a queue that is not there, or twice."""
    for group, named in groups.items():
        for place, queue in enumerate(named):
            if queue not in queues:
                there = ", ".join(queues) or "none"
                raise ValueError(f"groups.{group} has {queue!r}: it must be a queue of queues.yaml; there are {there}")
            if queue in named[:place]:
                raise ValueError(f"groups.{group} has {queue!r} twice: once is enough")
