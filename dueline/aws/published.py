"""Published: the settings of a deployment and its queues, as SSM parameters."""

import json
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from dueline.config.names import Names
from dueline.config.registry import settings_from
from dueline.config.settings import ApiSettings
from dueline.config.work import work_settings_from
from dueline.errors import DeploymentNotFound, QueueNotFound
from dueline.model.job import queue_name
from dueline.model.queue_settings import QueueSettings
from dueline.model.schema import check_deployment
from dueline.model.work_settings import WorkSettings
from dueline.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient

# A queue whose count of partitions grows is known to grow after so long; jobs go to the old ones meanwhile.
KNOWN_FOR_SECONDS = 60.0
# The share of that by which it is asked for earlier: SSM answers 40 requests a second of an account, and processes that
# began at once are not to ask at once for ever.
_SPREAD = 0.5
# Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
_MOST_A_REQUEST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cached:
    queue: QueueSettings
    until: float


class Published:
    """Reads the SSM parameters of a deployment. A queue's is cached for up to a minute.

    If reading it again fails, the cached one is used on: what a deployment takes away stays, and hands over what comes.
    """

    def __init__(
        self, client: "SSMClient", names: Names, *, clock: Clock, jitter: Callable[[], float] = random.random
    ) -> None:
        self._client = client
        self._names = names
        self._clock = clock
        self._jitter = jitter
        self._cache: dict[str, _Cached] = {}

    def settings(self) -> ApiSettings:
        """Return the settings that the HTTP API runs with, whatever else is published by now.

        Raises DeploymentNotFound, DeploymentTooOld or ClientTooOld.
        """
        told = self._deployment()
        # First: another version's settings may have other names.
        latest, oldest = told.get("schema", 0), told.get("oldest_schema", 0)
        check_deployment(self._names.deployment, latest=latest, oldest=oldest)
        return ApiSettings(**{each.name: told[each.name] for each in fields(ApiSettings)})

    def queue(self, name: str) -> QueueSettings:
        """Return a queue's settings. Raises QueueNotFound."""
        cached = self._cache.get(name)
        if cached is None:
            return self.anew(name)
        if cached.until <= self._clock.monotonic():
            # First, so that other threads go on with what is cached meanwhile.
            self._keep(name, cached.queue)
            with suppress(BotoCoreError, ClientError):
                return self.anew(name)
        return cached.queue

    def anew(self, name: str) -> QueueSettings:
        """Return a queue's settings as they are now. Raises QueueNotFound."""
        try:
            queue = settings_from(self._parameter(queue_name(name)), name=name)
        except QueueNotFound:
            self._cache.pop(name, None)
            raise
        self._keep(name, queue)
        return queue

    def work(self, name: str) -> WorkSettings:
        """Return a queue's settings for its workers, read anew each time. Raises QueueNotFound."""
        return work_settings_from(self._parameter(queue_name(name)), name=name)

    def queues(self) -> list[QueueSettings]:
        """Return all queues, by name."""
        pages = self._client.get_paginator("get_parameters_by_path").paginate(Path=self._names.queue_parameters)
        values = {each["Name"].rpartition("/")[2]: each["Value"] for page in pages for each in page["Parameters"]}
        return [settings_from(json.loads(value), name=name) for name, value in sorted(values.items())]

    def some(self, names: Sequence[str]) -> dict[str, QueueSettings]:
        """Return the settings of these queues, read anew, ten a request; those that are not there are left out."""
        found: dict[str, QueueSettings] = {}
        for start in range(0, len(names), _MOST_A_REQUEST):
            asked = {self._names.queue_parameter(name): name for name in names[start : start + _MOST_A_REQUEST]}
            for each in self._client.get_parameters(Names=list(asked))["Parameters"]:
                name = asked[each["Name"]]
                found[name] = settings_from(json.loads(each["Value"]), name=name)
        return found

    def _deployment(self) -> dict[str, Any]:
        """Return the settings and the schemas, which clients of before could not have read among the settings."""
        asked = [self._names.settings_parameter, self._names.schema_parameter]
        found = {each["Name"]: each["Value"] for each in self._client.get_parameters(Names=asked)["Parameters"]}
        if asked[0] not in found:
            name = self._names.deployment
            raise DeploymentNotFound(
                f"finding the deployment {name!r}: parameter {asked[0]}: there is none in this account and region"
            )
        return {**json.loads(found[asked[0]]), **json.loads(found.get(asked[1], "{}"))}

    def _keep(self, name: str, queue: QueueSettings) -> None:
        lasts = KNOWN_FOR_SECONDS * (1 - _SPREAD * self._jitter())
        self._cache[name] = _Cached(queue=queue, until=self._clock.monotonic() + lasts)

    def _parameter(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._value(self._names.queue_parameter(name)))
        except ClientError as error:
            if error.response["Error"].get("Code") == "ParameterNotFound":
                raise QueueNotFound(f"there is no queue {name!r}: it is not in queues.yaml") from None
            raise
        return content

    def _value(self, name: str) -> str:
        return self._client.get_parameter(Name=name)["Parameter"]["Value"]
