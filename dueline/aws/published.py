"""What a deployment publishes of itself, as SSM parameters."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from dueline.config.names import Names
from dueline.config.registry import settings_from
from dueline.config.settings import ApiSettings
from dueline.config.work import work_settings_from
from dueline.errors import QueueNotFound
from dueline.job import queue_name
from dueline.ports import Clock
from dueline.queue import QueueSettings
from dueline.working.settings import WorkSettings

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient

# A queue whose count of partitions grows is known to grow after so long; jobs go to the old ones meanwhile.
KNOWN_FOR_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    queue: QueueSettings
    until: float


class Published:
    """The parameters of a deployment; a queue's is read again when it is older than a minute."""

    def __init__(self, client: "SSMClient", names: Names, *, clock: Clock) -> None:
        self._client = client
        self._names = names
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def settings(self) -> ApiSettings:
        """Return the settings that the HTTP API runs with."""
        told: dict[str, Any] = json.loads(self._value(self._names.settings_parameter))
        return ApiSettings(**told)

    def queue(self, name: str) -> QueueSettings:
        """Return a queue's settings. Raises QueueNotFound."""
        now = self._clock.monotonic()
        known = self._known.get(name)
        if known is None or known.until <= now:
            queue = settings_from(self._told(queue_name(name)), name=name)
            known = self._known[name] = _Known(queue=queue, until=now + KNOWN_FOR_SECONDS)
        return known.queue

    def work(self, name: str) -> WorkSettings:
        """Return a queue as its workers see it, read anew each time. Raises QueueNotFound."""
        return work_settings_from(self._told(queue_name(name)), name=name)

    def queues(self) -> list[QueueSettings]:
        """Return all queues, by name."""
        pages = self._client.get_paginator("get_parameters_by_path").paginate(Path=self._names.queue_parameters)
        told = {each["Name"].rpartition("/")[2]: each["Value"] for page in pages for each in page["Parameters"]}
        return [settings_from(json.loads(value), name=name) for name, value in sorted(told.items())]

    def _told(self, name: str) -> dict[str, Any]:
        try:
            told: dict[str, Any] = json.loads(self._value(self._names.queue_parameter(name)))
        except ClientError as error:
            if error.response["Error"].get("Code") == "ParameterNotFound":
                raise QueueNotFound(f"there is no queue {name!r}: it is not in queues.yaml") from None
            raise
        return told

    def _value(self, name: str) -> str:
        return self._client.get_parameter(Name=name)["Parameter"]["Value"]
