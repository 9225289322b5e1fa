"""queues.yaml: a deployment's settings, its queues and their schedules, validated."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from dueline.config import ConfigurationError
from dueline.config.names import Names
from dueline.config.queue import EMAIL, STRICT, QueueConfig, RetryConfig, ScheduleConfig, ScheduleName
from dueline.config.yaml_file import OfForm, checked, load_as, none_is_empty
from dueline.core.job import MAX_RETENTION, QUEUE_NAME
from dueline.core.queue_settings import PLANNER, QueueSettings, WorkSettings
from dueline.schedules.definition import MAX_LABEL_CHARACTERS, Definition

ON_DEMAND = "on-demand"
# DynamoDB's quota of a table, unless it was raised.
MOST_UNITS = 40_000
# Of an account's 1,000 concurrent executions, unless the quota is raised, Lambda keeps 100 for what reserves none.
MOST_RESERVED = 100_000


class Capacity(BaseModel):
    """Provisioned units a second, of writes and of reads each, which follow the load between two bounds."""

    model_config = STRICT

    min: int = Field(ge=1, le=MOST_UNITS)
    """Units a second that are always paid for."""
    max: int = Field(ge=1, le=MOST_UNITS)
    """Units a second beyond which requests wait."""

    @model_validator(mode="after")
    def _bounds_fit(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"max is {self.max}: it must be at least min, which is {self.min}")
        return self


def _on_demand_is_none(setting: Any) -> Any:
    if setting == ON_DEMAND:
        return None
    if not isinstance(setting, dict | Capacity):
        raise ValueError(f"must be {ON_DEMAND}, or settings: there are {', '.join(Capacity.model_fields)}")
    return setting


# None is on demand.
MaybeCapacity = Annotated[
    Capacity | None, BeforeValidator(_on_demand_is_none, json_schema_input_type=Literal["on-demand"] | Capacity)
]


# The retentions that CloudWatch offers, in days.
LogRetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]
# What all services take whose resources are tagged.
_TAG_CHARACTERS = "[A-Za-z0-9 _.:/=+@-]"
_OF_A_QUEUES_STACK = "-queue(-|$)"

_MayBeBare = Annotated[QueueConfig, BeforeValidator(none_is_empty, json_schema_input_type=QueueConfig | None)]
QueueName = Annotated[str, Field(pattern=f"^{QUEUE_NAME}$")]
Groups = Annotated[dict[QueueName, Annotated[list[QueueName], Field(min_length=1)]], BeforeValidator(none_is_empty)]
# IAM looks at the key itself: a right to use an alias is none to use what it stands for.
_IS_A_KEY = "must be the ARN of a key, arn:aws:kms:{region}:{account}:key/{id}, and not of an alias"
KeyArn = Annotated[str, OfForm(r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", _IS_A_KEY)]
PolicyArn = Annotated[
    str,
    OfForm(
        r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$",
        "must be the ARN of a managed policy, arn:aws:iam::{account}:policy/{name}",
    ),
]
CertificateArn = Annotated[
    str,
    OfForm(
        r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[A-Za-z0-9-]+$",
        "must be the ARN of a certificate, arn:aws:acm:{region}:{account}:certificate/{id}",
    ),
]
_DOMAIN = r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$"
_IS_A_DOMAIN = "must be a domain name in lower case without a scheme or a path, such as jobs.example.com"
DomainName = Annotated[str, OfForm(f"(?!.{{254}}){_DOMAIN}", _IS_A_DOMAIN, {"pattern": _DOMAIN})]
_IS_NO_STACK_OF_ANOTHER = OfForm(
    f"(?!.*{_OF_A_QUEUES_STACK}).*",
    "must not end in -queue or hold -queue-: its stacks could have the names of another deployment's, whose queues'"
    " stacks are {name}-queue-{queue}",
    {"not": {"pattern": _OF_A_QUEUES_STACK}},
)
_IS_NOT_OUR_OWN = OfForm(f"(?!{PLANNER.name}$).*", "must be another name: it is that of a queue of Dueline's own", {})
_IS_NOT_OF_AWS = OfForm("(?!(?i:aws:)).*", "must not begin with aws:, which is AWS's own", {})

RunbookUrl = Annotated[str, Field(pattern=r"^(docs/runbooks|https://[^\s]*[^\s/])$", max_length=200)]
TagKey = Annotated[str, Field(pattern=f"^{_TAG_CHARACTERS}+$", max_length=128), _IS_NOT_OF_AWS]
TagValue = Annotated[str, Field(pattern=f"^{_TAG_CHARACTERS}+$", max_length=256)]


class Deployment(BaseModel):
    """A deployment: its settings and its queues. Periods are in seconds."""

    model_config = STRICT

    # The core stack of a deployment `dueline-queue` would have the name of the stack of the queue `core` of `dueline`.
    name: Annotated[str, _IS_NO_STACK_OF_ANOTHER] = Field(
        default="dueline", pattern=r"^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$"
    )
    """Prefix of the names of everything deployed. Must not end in `-queue` or contain `-queue-`."""
    tick_period: int = Field(default=60, ge=1, le=60)
    """Seconds between ticks: 60, unless `local_run` is true."""
    local_run: bool = False
    """A local run fires ticks, not EventBridge Scheduler."""
    lease: int = Field(default=30, ge=12, le=120)
    """Seconds that a tick holds its partition without renewing."""
    lookahead: int = Field(default=240, ge=1, le=880)
    """How far ahead a tick sends jobs to SQS. At least max(3 tick_period, 2 tick_period + lease) + 5."""
    direct_horizon: int = Field(default=890, ge=2, le=890)
    """Jobs due within these seconds go straight to SQS. At least lookahead + tick_period."""
    retention_days: int = Field(default=7, ge=1, le=MAX_RETENTION.days)
    """Days after its due time that a job is kept and may still be sent, unless its queue differs."""
    ingest_max_concurrency: int = Field(default=10, ge=2, le=1000)
    """Most ingest functions at once."""
    api_rate: int = Field(default=500, ge=1, le=10_000)
    """Requests a second that the HTTP API accepts."""
    api_burst: int = Field(default=200, ge=1, le=5_000)
    """Requests that it accepts at once."""
    tick_reserved_concurrency: int | None = Field(default=None, ge=1, le=MOST_RESERVED)
    """Concurrent executions reserved for ticks, and their limit: one for each partition is enough."""
    api_reserved_concurrency: int | None = Field(default=None, ge=1, le=MOST_RESERVED)
    """The same for the HTTP API."""
    log_retention_days: LogRetentionDays = 30
    """Days that logs are kept."""
    system_log_level: Literal["DEBUG", "INFO", "WARN"] = "WARN"
    """Which of Lambda's own lines are logged: at `INFO` three for each invocation, with cold starts."""
    domain_name: DomainName | None = None
    """Your own domain for the HTTP API, such as `jobs.example.com`."""
    certificate_arn: CertificateArn | None = None
    """With `domain_name`: its certificate in ACM, in the deployment's region."""
    alarm_email: str | None = Field(default=None, pattern=EMAIL)
    """Who gets alarms: by default nobody."""
    runbook_url: RunbookUrl = "docs/runbooks"
    """A link to your runbooks; mails add `/{page}.md`."""
    dashboards: Literal["none", "deployment", "all"] = "deployment"
    """CloudWatch dashboards: `all` has one for each queue too. An account's first three are free."""
    tracing: bool = False
    """Trace the functions with AWS X-Ray."""
    capacity: MaybeCapacity = Field(default=None, json_schema_extra={"default": ON_DEMAND})
    """How the jobs table is paid for: by request, or by provisioned units, of writes and of reads each."""
    storage: Literal["standard", "infrequent"] = "standard"
    """The jobs table's class; `infrequent` for waits of months."""
    point_in_time_recovery: bool = True
    """The jobs table can be restored to any second of the last 35 days."""
    kms_key_arn: KeyArn | None = None
    """Your own KMS key for queues, tables, logs, payloads and alarms."""
    permission_boundary: PolicyArn | None = None
    """A managed policy that limits every role of the deployment."""
    tags: Annotated[dict[TagKey, TagValue], BeforeValidator(none_is_empty)] = Field(
        default={},
        max_length=50,  # CloudFormation's, of a stack and of most resources
        json_schema_extra={"additionalProperties": False},
        description="Tags of the stacks and their resources.",
    )
    termination_protection: bool = False
    """No stack can be deleted until this is deployed as `false`."""
    queues: Annotated[dict[Annotated[QueueName, _IS_NOT_OUR_OWN], _MayBeBare], BeforeValidator(none_is_empty)] = Field(
        default={},
        json_schema_extra={"additionalProperties": False, "propertyNames": {"not": {"const": PLANNER.name}}},
        description=f"The queues, by name. `{PLANNER.name}` is Dueline's own.",
    )
    groups: Groups = Field(
        default={},
        json_schema_extra={"additionalProperties": False},
        description="Lists of queues, each with one policy for all its queues.",
    )

    @model_validator(mode="after")
    def _periods_fit(self) -> Self:
        if self.tick_period != 60 and not self.local_run:
            raise ValueError(
                f"tick_period is {self.tick_period}: it must be 60, which is how often EventBridge Scheduler"
                " fires, unless local_run is true"
            )
        least = max(3 * self.tick_period, 2 * self.tick_period + self.lease) + 5
        if self.lookahead < least:
            raise ValueError(
                f"lookahead is {self.lookahead}: it must be at least max(3 tick_period, 2 tick_period + lease) + 5,"
                f" which is {least}"
            )
        least = self.lookahead + self.tick_period
        if self.direct_horizon < least:
            raise ValueError(
                f"direct_horizon is {self.direct_horizon}: it must be at least lookahead + tick_period, which is"
                f" {least}"
            )
        return self

    @model_validator(mode="after")
    def _domain_has_a_certificate(self) -> Self:
        if (self.domain_name is None) is not (self.certificate_arn is None):
            present, missing = ("domain_name", "certificate_arn")[:: 1 if self.domain_name else -1]
            raise ValueError(f"{present} is {getattr(self, present)}: {missing} must be given with it")
        return self

    @model_validator(mode="after")
    def _groups_are_of_queues(self) -> Self:
        for group, named in self.groups.items():
            for place, queue in enumerate(named):
                if queue not in self.queues:
                    there = f"a queue of queues.yaml; there are {', '.join(self.queues) or 'none'}"
                    raise ValueError(f"groups.{group} has {queue!r}: it must be {there}")
                if queue in named[:place]:
                    raise ValueError(f"groups.{group} has {queue!r} twice: once is enough")
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

    def watched(self) -> dict[str, dict[str, str | bool]]:
        """Return the topic of each queue's owner, by its ARN or its name here, and whether the queue has metrics."""
        settings: dict[str, dict[str, str | bool]] = {}
        for name, queue in self.queues.items():
            settings[name] = {"metrics": True} if queue.metrics == "queue" else {}
            if queue.owner:
                is_topic = queue.owner.startswith("arn:")
                settings[name]["owner"] = queue.owner if is_topic else self.names.queue_alarms(name)
        return settings

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
            message_retention=settings.message_retention_days * 86_400,
            retry=settings.retry.policy,
        )


def load(path: Path) -> Deployment:
    """Return the deployment that a file describes.

    Raises ConfigurationError, which names every field that is wrong, its value and what is allowed.
    """
    return load_as(Deployment, path, allowed=_allowed_at)


def of_settings(settings: Mapping[str, Any]) -> Deployment:
    """Return the deployment of settings as queues.yaml has them. Raises ConfigurationError, as `load` does."""
    return checked(Deployment, settings, allowed=_allowed_at)


def _allowed_at(place: Sequence[int | str]) -> Iterable[str]:
    """Return the names of the settings allowed at a place in queues.yaml, or around it."""
    if place[0] != "queues":
        return (Capacity if place[0] == "capacity" else Deployment).model_fields
    if place[2:3] == ("schedules",):
        return ScheduleConfig.model_fields
    return (RetryConfig if place[2:3] == ("retry",) else QueueConfig).model_fields


class _QueueSchedules(BaseModel):
    # The other settings of a queue are read where it is deployed.
    schedules: Annotated[dict[ScheduleName, ScheduleConfig], BeforeValidator(none_is_empty)] = {}


class SchedulesFile(BaseModel):
    """The schedules of a file by queue, their owner, and the `name` of the deployment that they are for, if it has one.

    The owner is what the file has as `owner:`, or else the file's own name without the folder.
    """

    name: str | None = None
    owner: str = Field(min_length=1, max_length=MAX_LABEL_CHARACTERS)
    queues: dict[QueueName, Annotated[_QueueSchedules, BeforeValidator(none_is_empty)]]

    @property
    def schedules(self) -> dict[str, dict[str, Definition]]:
        return {
            queue: {name: replace(each.definition, owner=self.owner) for name, each in its.schedules.items()}
            for queue, its in self.queues.items()
        }


def load_schedules(path: Path, *, queue: str | None = None) -> SchedulesFile:
    """Read a file that has `queues:`, as queues.yaml, or `schedules:` alone, which are those of `queue`.

    Raises ConfigurationError.
    """
    prepare = partial(_by_queue, queue=queue, owner=path.name)
    return load_as(SchedulesFile, path, allowed=_allowed_at, prepare=prepare)


def _by_queue(settings: Any, *, queue: str | None, owner: str) -> Any:
    if not isinstance(settings, dict) or ("schedules" in settings) is ("queues" in settings):
        raise ConfigurationError("it must have queues, each with its schedules, or schedules alone")
    if "queues" in settings:
        if queue is not None:
            raise ConfigurationError(f"it has queues of its own: the queue {queue!r} is for a file without")
        return {"owner": owner, **settings}
    if queue is None:
        raise ConfigurationError("it has schedules without a queue: name theirs with --queue")
    return {"owner": owner, **settings, "queues": {queue: {"schedules": settings["schedules"]}}}
