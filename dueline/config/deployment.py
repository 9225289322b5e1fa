"""queues.yaml, validated."""

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator

from dueline.config.capacity import (
    MOST_RESERVED,
    MOST_UNITS,
    NEW_TABLE_WRITES,
    ON_DEMAND,
    Capacity,
    MaybeCapacity,
    Storage,
)
from dueline.config.dashboards import Dashboards
from dueline.config.groups import Groups, QueueName, check_groups
from dueline.config.names import Names
from dueline.config.owner import EMAIL
from dueline.config.periods import check_periods
from dueline.config.platform import LOG_RETENTION_DAYS, MOST_TAGS, KeyArn, PolicyArn, Rollout, TagKey, TagValue
from dueline.config.queue import STRICT, Queue, Retry
from dueline.config.schedule import Schedule
from dueline.config.yaml_file import load_as, none_is_empty
from dueline.model.job import MAX_RETENTION
from dueline.model.queue_settings import PLANNER, QueueSettings
from dueline.model.work_settings import WorkSettings

_OF_A_QUEUES_STACK = "-queue(-|$)"

_MayBeBare = Annotated[Queue, BeforeValidator(none_is_empty, json_schema_input_type=Queue | None)]


class Deployment(BaseModel):
    """A deployment: its settings and its queues. Periods are in seconds."""

    model_config = STRICT

    name: str = Field(
        default="dueline",
        pattern=r"^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$",
        json_schema_extra={"not": {"pattern": _OF_A_QUEUES_STACK}},
        description="What the names of all that is deployed begin with. Neither ends in `-queue` nor holds `-queue-`.",
    )
    tick_period: int = Field(
        default=60,
        ge=1,
        le=60,
        description="How often ticks fire: 60, as EventBridge Scheduler does, unless `local_run` is true.",
    )
    local_run: bool = Field(
        default=False, description="Something else than EventBridge Scheduler fires the ticks, as a local run does."
    )
    lease: int = Field(default=30, ge=12, le=120, description="How long a tick holds its partition without renewing.")
    lookahead: int = Field(
        default=240,
        ge=1,
        le=880,
        description="How far ahead a tick hands jobs to SQS. At least max(3 tick_period, 2 tick_period + lease) + 5.",
    )
    direct_horizon: int = Field(
        default=890,
        ge=2,
        le=890,
        description="Jobs due within this go straight to their queue. At least lookahead + tick_period.",
    )
    retention_days: int = Field(
        default=7,
        ge=1,
        le=MAX_RETENTION.days,
        description="Days after its due time that a job is kept and may still be sent, unless its queue says so.",
    )
    ingest_max_concurrency: int = Field(
        default=10, ge=2, le=1000, description="Most ingest functions at once: the rate limit of writes to the table."
    )
    api_rate: int = Field(default=500, ge=1, le=10_000, description="Requests a second that the HTTP API takes.")
    api_burst: int = Field(default=1000, ge=1, le=5_000, description="Requests that the HTTP API takes at once.")
    tick_reserved_concurrency: int | None = Field(
        default=None,
        ge=1,
        le=MOST_RESERVED,
        description="Of the account's concurrent executions, what is kept for ticks; so many run at once at most. One"
        " for each partition is enough.",
    )
    api_reserved_concurrency: int | None = Field(
        default=None, ge=1, le=MOST_RESERVED, description="The same for the HTTP API, so that it cannot take all."
    )
    log_retention_days: int = Field(
        default=30,
        json_schema_extra={"enum": [*LOG_RETENTION_DAYS]},
        description="Days that logs are kept.",
    )
    alarm_email: str | None = Field(
        default=None, pattern=EMAIL, description="Who is told of alarms. Without it: nobody."
    )
    dashboards: Annotated[Dashboards, Field(strict=False)] = Field(
        default=Dashboards.DEPLOYMENT,
        description="CloudWatch dashboards, of which three of an account are free: `all` has one of each queue, too.",
    )
    tracing: bool = Field(default=False, description="Trace the functions with AWS X-Ray.")
    capacity: MaybeCapacity = Field(
        default=None,
        json_schema_extra={"default": ON_DEMAND},
        description="How the jobs table is paid for: by request, or by units provisioned, of writes and of reads each.",
    )
    warm_writes: int | None = Field(
        default=None,
        ge=NEW_TABLE_WRITES,
        le=MOST_UNITS,
        description="Write units a second that the jobs table takes from the start, if it is paid by request. Raised"
        f" for a price, and never lowered. Default: DynamoDB's, {NEW_TABLE_WRITES:,} for a new table.",
    )
    storage: Annotated[Storage, Field(strict=False)] = Field(
        default=Storage.STANDARD, description="The jobs table's class; `infrequent` is for jobs that wait for months."
    )
    point_in_time_recovery: bool = Field(
        default=True, description="The jobs table can be restored to any second of the last 35 days."
    )
    kms_key_arn: KeyArn | None = Field(
        default=None,
        description="Your own KMS key for queues, tables, logs, payloads and alarms. Without it: keys that AWS owns.",
    )
    kms_data_key_reuse: int = Field(
        default=300,
        ge=60,
        le=86_400,
        description="With `kms_key_arn`: seconds for which SQS goes on with a data key before it asks KMS again.",
    )
    permission_boundary: PolicyArn | None = Field(
        default=None, description="A managed policy beyond which no role of the deployment may do anything."
    )
    tags: Annotated[dict[TagKey, TagValue], BeforeValidator(none_is_empty)] = Field(
        default={},
        max_length=MOST_TAGS,
        json_schema_extra={"additionalProperties": False},
        description="Tags of the stacks and of all in them that takes tags, each a name and a text.",
    )
    termination_protection: bool = Field(
        default=False, description="No stack can be deleted before this is `false` again and deployed."
    )
    deployments: Annotated[Rollout, Field(strict=False)] = Field(
        default=Rollout.CANARY,
        description="How new code of the HTTP API takes over: `canary` gives it a tenth of the requests for five"
        " minutes, and takes it back if an alarm fires.",
    )
    queues: Annotated[dict[QueueName, _MayBeBare], BeforeValidator(none_is_empty)] = Field(
        default={},
        json_schema_extra={"additionalProperties": False, "propertyNames": {"not": {"const": PLANNER.name}}},
        description=f"The queues, by name. `{PLANNER.name}` is Dueline's own.",
    )

    groups: Groups = {}

    @field_validator("name")
    @classmethod
    def _begins_no_stack_of_another(cls, name: str) -> str:
        """Refuse `dueline-queue`: its core stack has the name of the stack of the queue `core` of `dueline`."""
        if re.search(_OF_A_QUEUES_STACK, name):
            raise ValueError(
                "must not end in -queue or hold -queue-: its stacks could have the names of another deployment's, whose"
                " queues' stacks are {name}-queue-{queue}"
            )
        return name

    @field_validator("queues")
    @classmethod
    def _is_none_of_our_own(cls, queues: dict[str, Queue]) -> dict[str, Queue]:
        if PLANNER.name in queues:
            raise ValueError(f"{PLANNER.name} is the name of a queue of Dueline's own: it must be another one")
        return queues

    @field_validator("log_retention_days")
    @classmethod
    def _is_what_cloudwatch_offers(cls, days: int) -> int:
        offered = cls.model_json_schema()["properties"]["log_retention_days"]["enum"]
        if days not in offered:
            raise ValueError(f"must be one of {', '.join(map(str, offered))}")
        return days

    @model_validator(mode="after")
    def _periods_fit(self) -> Self:
        periods = {name: getattr(self, name) for name in ("tick_period", "lease", "lookahead", "direct_horizon")}
        check_periods(**periods, is_local=self.local_run)
        return self

    @model_validator(mode="after")
    def _groups_are_of_queues(self) -> Self:
        check_groups(self.groups, queues=self.queues)
        return self

    @model_validator(mode="after")
    def _is_warm_on_demand(self) -> Self:
        if self.warm_writes and self.capacity:
            raise ValueError(f"warm_writes is {self.warm_writes}: it must be left out where capacity is provisioned")
        return self

    @property
    def names(self) -> Names:
        return Names(self.name)

    def queue_settings(self) -> list[QueueSettings]:
        """Return the queues' settings as far as the protocol needs them."""
        return [
            QueueSettings(
                name=name,
                partitions=queue.partitions,
                retention=timedelta(days=queue.retention_days or self.retention_days),
                precise=queue.precise,
                priorities=queue.priorities,
                track=queue.track,
            )
            for name, queue in self.queues.items()
        ]

    def work_settings(self, queue: QueueSettings, *, urls: Sequence[str], dead_letters: str) -> WorkSettings:
        """Return a queue's settings as its workers need them; `urls` are those of its levels."""
        settings = self.queues[queue.name]
        return WorkSettings(
            queue=queue,
            urls=tuple(urls),
            dead_letters=dead_letters,
            visibility_timeout=settings.visibility_timeout,
            longest_run=settings.longest_run,
            max_receives=settings.receives,
            retry=settings.retry.policy,
        )


def load(path: Path) -> Deployment:
    """Return the deployment that a file describes.

    Raises ConfigurationError, which names every field that is wrong, its value and what is allowed.
    """
    return load_as(Deployment, path, known=_known_at)


def _known_at(place: Sequence[int | str]) -> Iterable[str]:
    """Return the names of the settings that there are at a place in queues.yaml, or around it."""
    if place[0] != "queues":
        return (Capacity if place[0] == "capacity" else Deployment).model_fields
    if place[2:3] == ("schedules",):
        return Schedule.model_fields
    return (Retry if place[2:3] == ("retry",) else Queue).model_fields
