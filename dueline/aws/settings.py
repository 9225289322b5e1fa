"""Published: the settings of a deployment and its queues, as SSM parameters."""

import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from dueline.aws.botocore_errors import is_missing, map_botocore_errors, unless
from dueline.config.environment import ApiSettings
from dueline.config.names import Names
from dueline.core.job import queue_name
from dueline.core.message import check_deployment
from dueline.core.ports import Clock
from dueline.core.queue_settings import QueueSettings, WorkSettings
from dueline.core.retry import attempt
from dueline.core.threads import FAILED_FOR_SECONDS, RefreshingValue
from dueline.errors import RETRYABLE, DeploymentNotFound, DuelineError, QueueNotFound, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient

# A queue whose count of partitions grows is known to grow after so long; jobs go to the old ones meanwhile.
KNOWN_FOR_SECONDS = 60.0
# The longest time before what is not deployed yet is read again.
RETRY_SECONDS = 5.0
# https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
MOST_NAMES = 10


@contextmanager
def reading(parameter: str) -> Iterator[None]:
    """Raise Unavailable, which names the SSM parameter, where its content is not as a deployment writes it."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unavailable(f"parameter {parameter} cannot be read: {type(error).__name__}: {error}") from error


def settings_in(parameter: Mapping[str, Any]) -> QueueSettings:
    """Return what an SSM parameter says of the queue that it is named after. Raises Unavailable."""
    with reading(parameter["Name"]):
        return QueueSettings.from_json(json.loads(parameter["Value"]), name=parameter["Name"].rpartition("/")[2])


class SettingsStore:
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
        self._queues: dict[str, RefreshingValue[QueueSettings]] = {}

    def settings(self) -> ApiSettings:
        """Return the settings that the HTTP API runs with, whatever else is published by now.

        Raises DeploymentNotFound, DeploymentTooOld or ClientTooOld.
        """
        names = [self._names.settings_parameter, self._names.schema_parameter]
        values = {each["Name"]: each["Value"] for each in self._client.get_parameters(Names=names)["Parameters"]}
        if names[0] not in values:
            deployment = self._names.deployment
            raise DeploymentNotFound(
                f"finding the deployment {deployment!r}: parameter {names[0]}: there is none in this account and region"
            )
        with reading(names[0]):
            settings = {**json.loads(values[names[0]]), **json.loads(values.get(names[1], "{}"))}
        latest, oldest = settings.get("schema", 0), settings.get("oldest_schema", 0)
        # First: another version's settings may have other names.
        check_deployment(self._names.deployment, latest=latest, oldest=oldest)
        with reading(names[0]):
            return ApiSettings(**{each.name: settings[each.name] for each in fields(ApiSettings)})

    def queue(self, name: str) -> QueueSettings:
        """Return a queue's settings, as old as a minute. Raises QueueNotFound."""
        return self._read(name, RefreshingValue.__call__)

    def refresh(self, name: str) -> QueueSettings:
        return self._read(name, RefreshingValue.refresh)

    def work(self, name: str) -> WorkSettings:
        """Return a queue's settings for its workers, read again each time. Raises QueueNotFound."""
        parameter = self._parameter(name)
        with reading(parameter["Name"]):
            return WorkSettings.from_json(json.loads(parameter["Value"]), name=name)

    def queues(self) -> list[QueueSettings]:
        """Return all queues, by name."""
        pages = self._client.get_paginator("get_parameters_by_path").paginate(Path=self._names.queue_parameters)
        queues = [settings_in(each) for page in pages for each in page["Parameters"]]
        return sorted(queues, key=lambda queue: queue.name)

    def published(self, names: Sequence[str]) -> dict[str, QueueSettings | DuelineError]:
        """Return the settings of up to ten queues as they are now, or why one cannot be read; none of one without."""
        answer = self._client.get_parameters(Names=list(map(self._names.queue_parameter, names)))
        return {each["Name"].rpartition("/")[2]: attempt(settings_in, each) for each in answer["Parameters"]}

    def _read(self, name: str, read: Callable[[RefreshingValue[QueueSettings]], QueueSettings]) -> QueueSettings:
        if name not in self._queues:
            value = RefreshingValue(
                lambda: settings_in(self._parameter(name)),
                seconds=KNOWN_FOR_SECONDS,
                clock=self._clock,
                jitter=self._jitter,
                faults=(BotoCoreError, ClientError),
            )
            self._queues.setdefault(name, value)
        try:
            return read(self._queues[name])
        except QueueNotFound:
            self._queues.pop(name, None)
            raise

    def _parameter(self, name: str) -> Mapping[str, Any]:
        parameter = self._names.queue_parameter(queue_name(name))
        answer = unless(is_missing, lambda: self._client.get_parameter(Name=parameter))
        if answer is None:
            of = self._names.deployment
            raise QueueNotFound(f"deployment {of!r} has no queue {name!r}: it is not in its queues.yaml")
        return answer["Parameter"]


class ActivePartitions:
    """Knows how many partitions of each of `queues` stand: those published after their schedules were made.

    SSM answers 40 requests a second per account. So ten queues are read at once, until all partitions stand that
    queues.yaml declares, and never again: no schedule is removed while it is declared. `published` reads what is
    published of queues.
    """

    def __init__(
        self,
        published: Callable[[Sequence[str]], Mapping[str, QueueSettings | DuelineError]],
        *,
        queues: Iterable[str],
        clock: Clock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._published, self._clock = published, clock
        self._values: dict[str, RefreshingValue[Mapping[str, QueueSettings | DuelineError]]] = {}
        self._fault: DuelineError | None = None
        self._fault_over = 0.0
        self._counts: dict[str, int] = {}
        names = list(queues)
        for first in range(0, len(names), MOST_NAMES):
            some = names[first : first + MOST_NAMES]
            read = partial(self._read, some)
            value = RefreshingValue(read, seconds=RETRY_SECONDS, clock=clock, jitter=jitter)
            self._values |= dict.fromkeys(some, value)

    def __call__(self, queue: QueueSettings) -> int:
        """Return how many partitions of a queue stand, as last read; none while it is not deployed.

        Raises Throttled or Unavailable where it was never read.
        """
        count = self._counts.get(queue.name)
        if count is not None and count >= queue.partitions:
            return count
        settings = self._values[queue.name]().get(queue.name)
        if not isinstance(settings, DuelineError):
            count = self._counts[queue.name] = settings.partitions if settings else 0
        elif count is None:
            raise settings.copy()
        return count

    def _read(self, names: Sequence[str]) -> Mapping[str, QueueSettings | DuelineError]:
        # A request that is not answered takes seconds: one after the other would outlast a function.
        if self._fault is not None and self._clock.monotonic() < self._fault_over:
            raise self._fault.copy()
        try:
            with map_botocore_errors("reading how far queues are deployed"):
                return self._published(names)
        except RETRYABLE as fault:
            self._fault, self._fault_over = fault, self._clock.monotonic() + FAILED_FOR_SECONDS
            raise


class TicksFirst:
    """Knows by their ticks that all partitions of a queue stand; calls `active_partitions` only where some do not tick.

    Functions that start at once, by the hundred, find out so from the state table: SSM would refuse them.
    """

    def __init__(
        self,
        all_tick: Callable[[QueueSettings], bool],
        *,
        active_partitions: Callable[[QueueSettings], int],
        clock: Clock,
    ) -> None:
        self._all_tick = all_tick
        self._active_partitions = active_partitions
        self._clock = clock
        self._looks_again: dict[str, float] = {}
        self._fault_over = -math.inf

    def __call__(self, queue: QueueSettings) -> int:
        """Return how many partitions of a queue stand. Raises Throttled or Unavailable where that is not known."""
        now = self._clock.monotonic()
        if now >= max(self._looks_again.get(queue.name, now), self._fault_over):
            try:
                # No schedule is removed while it is declared.
                self._looks_again[queue.name] = math.inf if self._all_tick(queue) else now + RETRY_SECONDS
            except RETRYABLE:
                # A request that is not answered takes seconds: one for each of many queues would outlast a function.
                self._fault_over = self._clock.monotonic() + RETRY_SECONDS
        stands = self._looks_again.get(queue.name) == math.inf
        return queue.partitions if stands else self._active_partitions(queue)
