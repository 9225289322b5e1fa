"""One queue of queues.yaml, validated. Times are in seconds."""

from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dueline.config.yaml_file import OfForm, none_is_empty
from dueline.core import instant, queue_settings
from dueline.core.job import MAX_PRIORITY, MAX_RETENTION, SCHEDULE_NAME
from dueline.schedules.definition import CatchUp, Definition, Overlap

ScheduleName = Annotated[str, Field(pattern=f"^{SCHEDULE_NAME}$")]
EMAIL = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
# A dead letter keeps the time at which it was first sent, and its queue keeps messages for 14 days at most.
MOST_RETENTION_DAYS = 13
# Crashes and stops of workers are receives too: SQS, which gives no reason, comes after the workers.
RECEIVES_TO_SPARE = 5
STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)
_POLICY = queue_settings.RetryPolicy()


def _text(moment: Any) -> Any:
    """Return a time as text: YAML takes one that stands without quotes for a time of its own."""
    return moment.isoformat() if isinstance(moment, date) else moment


_Instant = Annotated[str | None, BeforeValidator(_text)]
_SpanText = Annotated[str, Field(pattern=instant.SPAN_PATTERN)]
_FromAMinute = Annotated[int, Field(ge=60)]
_FromZero = Annotated[int, Field(ge=0)]
_Interval = Annotated[_FromAMinute, BeforeValidator(instant.seconds, json_schema_input_type=_FromAMinute | _SpanText)]
_Spread = Annotated[_FromZero, BeforeValidator(instant.seconds, json_schema_input_type=_FromZero | _SpanText)]


class ScheduleConfig(BaseModel):
    """One schedule: when it runs, by `cron` or `every`, and the job that each run is."""

    model_config = ConfigDict(
        **STRICT, title="Schedule", json_schema_extra={"oneOf": [{"required": ["cron"]}, {"required": ["every"]}]}
    )

    cron: str | None = None
    """A cron expression of five fields, or `@daily` and such."""
    every: _Interval | None = None
    """Instead of `cron`: seconds between runs, or such as 15m."""
    zone: str = "UTC"
    """The IANA time zone of `cron`, such as Europe/Berlin."""
    payload: Any = None
    """The payload of each run, 8 KiB at most when compressed."""
    start: _Instant = None
    """No run is before it: ISO 8601 with a zone, in whole seconds."""
    end: _Instant = None
    """All runs are before it."""
    count: int | None = Field(default=None, ge=1, le=1000)
    """Runs from `start` on."""
    kind: str | None = None
    """Which handler runs its jobs."""
    tenant: str | None = None
    """Whose jobs they are."""
    priority: int = Field(default=1, ge=1, le=MAX_PRIORITY)
    """The priority of its jobs."""
    jitter: _Spread = 0
    """Seconds over which the runs of schedules are spread, or such as 5m."""
    catch_up: Annotated[CatchUp, Field(strict=False)] = CatchUp.LATEST
    """Which missed runs are made."""
    overlap: Annotated[Overlap, Field(strict=False)] = Overlap.ALLOW
    """`skip`: no run starts while another one is running."""

    @model_validator(mode="after")
    def _is_one_that_runs(self) -> Self:
        _ = self.definition
        return self

    @cached_property
    def definition(self) -> Definition:
        """What the schedule is. Raises InvalidSchedule."""
        return Definition.from_dict({name: value for name, value in self.model_dump().items() if value is not None})


Owner = Annotated[
    str,
    OfForm(
        rf"{EMAIL}|^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{{12}}:[A-Za-z0-9_-]+$",
        "must be an e-mail address, or the ARN of an SNS topic, arn:aws:sns:{region}:{account}:{name}",
    ),
]
# A stack that names a role which does not exist is rolled back.
Producer = Annotated[
    str,
    OfForm(
        r"^arn:aws[a-z-]*:iam::[0-9]{12}:(root|role/[A-Za-z0-9+=,.@_/-]+)$",
        "must be the ARN of an account, arn:aws:iam::{account}:root, or of a role, arn:aws:iam::{account}:role/{name}",
    ),
]


class RetryConfig(BaseModel):
    """When the workers of a queue try a job again that failed."""

    model_config = ConfigDict(**STRICT, title="Retry")

    backoff: Annotated[queue_settings.Backoff, Field(strict=False)] = _POLICY.backoff
    """How delays grow; `linear-exponential` is linear for five, then doubles."""
    attempts: int = Field(default=_POLICY.attempts, ge=1, le=queue_settings.MOST_RECEIVES)
    """Attempts before workers put a job into the dead-letter queue, with the reason."""
    delay: int = Field(default=_POLICY.delay, ge=1, le=queue_settings.LONGEST_HIDDEN_SECONDS)
    """Seconds before the second attempt."""
    max_delay: int = Field(default=_POLICY.max_delay, ge=1, le=queue_settings.LONGEST_HIDDEN_SECONDS)
    """Most seconds between two attempts. At least delay."""

    @model_validator(mode="after")
    def _delays_fit(self) -> Self:
        if self.max_delay < self.delay:
            raise ValueError(f"max_delay is {self.max_delay}: it must be at least delay, which is {self.delay}")
        return self

    @property
    def policy(self) -> queue_settings.RetryPolicy:
        return queue_settings.RetryPolicy(**self.model_dump())


class QueueConfig(BaseModel):
    """One queue. Every setting has a default, so a queue is one line: its name and a colon."""

    model_config = ConfigDict(**STRICT, title="Queue")

    partitions: int = Field(default=1, ge=1, le=queue_settings.MOST_PARTITIONS)
    """Parts of the queue, each with its own tick. Raise it at will; a lower count keeps the old ticks."""
    visibility_timeout: int = Field(default=30, ge=0, le=43_200)
    """Seconds that a received message is hidden from other workers. This library's need 5 or more."""
    max_receives: int | None = Field(
        default=None,
        ge=1,
        le=queue_settings.MOST_RECEIVES,
        description="Receives before SQS moves a message to the dead-letter queue. At least retry.attempts."
        f" Default: retry.attempts + {RECEIVES_TO_SPARE}, at most {queue_settings.MOST_RECEIVES:,}.",
    )
    message_retention_days: int = Field(default=4, ge=1, le=MOST_RETENTION_DAYS)
    """Days that SQS keeps an undeleted message. A dead letter is kept for the rest of 14."""
    retention_days: int | None = Field(default=None, ge=1, le=MAX_RETENTION.days)
    """Days after its due time that a job is kept and may still be sent. Default: the deployment's."""
    precise: bool = False
    """Jobs come up to 1.25 s early, for workers of this library, which wait that out."""
    priorities: int = Field(default=1, ge=1, le=MAX_PRIORITY)
    """Levels of urgency, 1 the most urgent, each an SQS queue. A lower count keeps the old SQS queues."""
    longest_run: int = Field(
        default=3600,
        ge=1,
        le=queue_settings.LONGEST_HIDDEN_SECONDS,
        description="Seconds that a job may run at a worker, which keeps its message hidden."
        f" With retry.max_delay at most {queue_settings.LONGEST_HIDDEN_SECONDS:,}.",
    )
    track: bool = False
    """Workers of this library record outcomes for look-ups: two writes an attempt."""
    owner: Owner | None = None
    """Who also gets this queue's alarms: an e-mail address, or the ARN of an SNS topic."""
    metrics: Literal["deployment", "queue"] = "deployment"
    """`queue`: CloudWatch metrics and alarms of its own, at a price."""
    producers: list[Producer] = Field(
        default=[],
        # An alias's policy has 20 KB.
        max_length=20,
        description="ARNs of other accounts, or of roles in them, that may invoke the API for this queue.",
    )
    schedules: Annotated[dict[ScheduleName, ScheduleConfig], BeforeValidator(none_is_empty)] = Field(
        default={}, json_schema_extra={"additionalProperties": False}
    )
    """The queue's schedules, by name: `dueline schedules apply` puts them."""
    retry: RetryConfig = RetryConfig()
    """When workers of Dueline's library retry a failed job."""

    @model_validator(mode="after")
    def _schedules_fit(self) -> Self:
        for name, schedule in self.schedules.items():
            if schedule.priority > self.priorities:
                place = f"schedules.{name}.priority is {schedule.priority}"
                raise ValueError(f"{place}: it must be from 1 to priorities, which is {self.priorities}")
        return self

    @model_validator(mode="after")
    def _receives_fit(self) -> Self:
        # Left out, `attempts` is what `max_receives` allows.
        if "attempts" in self.retry.model_fields_set and self.receives < self.retry.attempts:
            raise ValueError(
                f"max_receives is {self.receives}: it must be at least retry.attempts, which is {self.retry.attempts}"
            )
        return self

    @model_validator(mode="after")
    def _a_run_and_a_delay_fit(self) -> Self:
        # Counted from its receipt, a worker hides a message no longer: SQS's 12 hours, less a reserve.
        most = queue_settings.LONGEST_HIDDEN_SECONDS - self.retry.max_delay
        if self.longest_run > most:
            raise ValueError(
                f"longest_run is {self.longest_run}: it must be at most {queue_settings.LONGEST_HIDDEN_SECONDS} less"
                f" retry.max_delay, which is {most}"
            )
        return self

    @model_validator(mode="after")
    def _attempts_fit(self) -> Self:
        # SQS counts its retention from when a message was sent, and deletes it without a dead letter.
        policy, kept = self.retry.policy, self.message_retention_days * 86_400
        attempts = min(policy.attempts, self.receives)
        least = sum(policy.delay_after(attempt, jitter=0.0) for attempt in range(1, attempts))
        if least >= kept:
            raise ValueError(
                f"message_retention_days is {self.message_retention_days}, {kept} seconds: the delays of"
                f" {attempts} attempts are {least} seconds at least, and SQS must keep a message for longer"
            )
        return self

    @property
    def receives(self) -> int:
        """After how many receives SQS moves a message to the dead-letter queue."""
        return self.max_receives or min(queue_settings.MOST_RECEIVES, self.retry.attempts + RECEIVES_TO_SPARE)
