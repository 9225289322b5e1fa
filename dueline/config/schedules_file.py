"""The schedules that a file declares, by queue: queues.yaml, or a file that has nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dueline.config.schedule import Schedule, ScheduleName
from dueline.config.yaml_file import ConfigurationError, load_as, none_is_empty
from dueline.model.job import QUEUE_NAME
from dueline.schedules.definition import Definition

QueueName = Annotated[str, Field(pattern=f"^{QUEUE_NAME}$")]


class _Queue(BaseModel):
    # The other settings of a queue are read where it is deployed.
    model_config = ConfigDict(extra="ignore")

    schedules: Annotated[dict[ScheduleName, Schedule], BeforeValidator(none_is_empty)] = {}


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    queues: dict[QueueName, Annotated[_Queue, BeforeValidator(none_is_empty)]]


def load_schedules(path: Path, *, queue: str | None = None) -> Mapping[str, Mapping[str, Definition]]:
    """Return the schedules of each queue that a file names.

    A file has `queues:`, as queues.yaml, or `schedules:` alone, which are those of `queue`. Raises ConfigurationError.
    """
    file = load_as(_File, path, known=_known_at, prepare=lambda settings: _by_queue(settings, queue))
    return {
        name: {each: schedule.definition for each, schedule in of_queue.schedules.items()}
        for name, of_queue in file.queues.items()
    }


def _by_queue(settings: Any, queue: str | None) -> Any:
    if not isinstance(settings, dict) or ("schedules" in settings) is ("queues" in settings):
        raise ConfigurationError("it must have queues, each with its schedules, or schedules alone")
    if "queues" in settings:
        if queue is not None:
            raise ConfigurationError(f"it has queues of its own: the queue {queue!r} is for a file without")
        return settings
    if queue is None:
        raise ConfigurationError("it has schedules without a queue: name theirs with --queue")
    return {"queues": {queue: {"schedules": settings["schedules"]}}}


def _known_at(place: Sequence[int | str]) -> Sequence[str]:
    return list(Schedule.model_fields) if len(place) > 3 or place[-1] != "schedules" else ["schedules"]
