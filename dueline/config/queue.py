"""One queue of queues.yaml, validated. Times are in seconds."""

import json
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from dueline.config.owner import Owner
from dueline.config.schedule import Schedule, ScheduleName
from dueline.config.yaml_file import none_is_empty
from dueline.model.job import MAX_PRIORITY, MAX_RETENTION
from dueline.model.queue_settings import JOBS_PER_PARTITION, MOST_PARTITIONS
from dueline.model.retry_policy import MAX_HIDDEN_SECONDS, Backoff, RetryPolicy

MOST_SCHEDULES = 50
# It takes 1 MB a template as well, of which a queue with all of these needs 490 KB besides.
MOST_SCHEDULE_BYTES = 400_000
# A dead letter keeps the time at which it was first sent, and its queue keeps messages for 14 days at most.
MOST_RETENTION_DAYS = 13
# SQS's own, of a queue's maxReceiveCount.
MOST_RECEIVES = 1000
# Crashes and stops of workers are receives too: SQS, which tells no reason, is to come after the workers.
RECEIVES_TO_SPARE = 5
STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
_POLICY = RetryPolicy()


class Retry(BaseModel):
    """When the workers of a queue try a job again that failed."""

    model_config = STRICT

    backoff: Annotated[Backoff, Field(strict=False)] = Field(
        default=_POLICY.backoff,
        description="How the delays between attempts grow; `linear-exponential` is linear for five, then doubles.",
    )
    attempts: int = Field(
        default=_POLICY.attempts,
        ge=1,
        le=MOST_RECEIVES,
        description="How often a job is tried before workers put it into the dead-letter queue, with the reason.",
    )
    delay: int = Field(
        default=_POLICY.delay, ge=1, le=MAX_HIDDEN_SECONDS, description="Seconds before the second attempt."
    )
    max_delay: int = Field(
        default=_POLICY.max_delay,
        ge=1,
        le=MAX_HIDDEN_SECONDS,
        description="Most seconds between two attempts. At least delay.",
    )

    @model_validator(mode="after")
    def _delays_fit(self) -> Self:
        if self.max_delay < self.delay:
            raise ValueError(f"max_delay is {self.max_delay}: it must be at least delay, which is {self.delay}")
        return self

    @property
    def policy(self) -> RetryPolicy:
        return RetryPolicy(**self.model_dump())


class Queue(BaseModel):
    """One queue. Every setting has a default, so a queue is one line: its name and a colon."""

    model_config = STRICT

    partitions: int = Field(
        default=1,
        ge=1,
        le=MOST_PARTITIONS,
        description="Slices of the queue, each with its own tick. Raise it at will; a lower count keeps the old ticks.",
    )
    expected_rate: int | None = Field(
        default=None,
        ge=1,
        le=MOST_PARTITIONS * JOBS_PER_PARTITION,
        description="Jobs a second to expect at most. Changes nothing, but a deployment warns where there are too few"
        f" partitions: each carries {JOBS_PER_PARTITION} with rows of up to 1 KB. Without it: no warning.",
    )
    visibility_timeout: int = Field(
        default=30, ge=0, le=43_200, description="Seconds that a received message stays hidden from other workers."
    )
    max_receives: int | None = Field(
        default=None,
        ge=1,
        le=MOST_RECEIVES,
        description="Receives of a message before SQS moves it to the dead-letter queue. At least retry.attempts."
        f" Default: retry.attempts + {RECEIVES_TO_SPARE}, at most {MOST_RECEIVES:,}.",
    )
    message_retention_days: int = Field(
        default=4,
        ge=1,
        json_schema_extra={"maximum": MOST_RETENTION_DAYS},
        description="Days that SQS keeps a message that no worker deletes. A dead letter is kept for the rest of 14.",
    )
    retention_days: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RETENTION.days,
        description="Days after its due time that a job is kept and may still be sent. Default: the deployment's.",
    )
    precise: bool = Field(
        default=False,
        description="Jobs come up to 1.25 s early: only for workers of Dueline's library, which wait that out.",
    )
    priorities: int = Field(
        default=1,
        ge=1,
        le=MAX_PRIORITY,
        description="Levels of urgency, 1 the most urgent, each an SQS queue. A lower count keeps the old SQS queues.",
    )
    longest_run: int = Field(
        default=3600,
        ge=1,
        le=MAX_HIDDEN_SECONDS,
        description="Seconds that a job may run at a worker, which hides its message again and again."
        f" With retry.max_delay at most {MAX_HIDDEN_SECONDS:,}.",
    )
    track: bool = Field(
        default=False,
        description="Workers of Dueline's library note what becomes of jobs, for look-ups: two writes an attempt.",
    )
    owner: Owner | None = Field(
        default=None,
        description="Who is told of this queue's alarms, besides the deployment's topics: an e-mail address, or the ARN"
        " of an SNS topic.",
    )
    schedules: Annotated[dict[ScheduleName, Schedule], BeforeValidator(none_is_empty)] = Field(
        default={},
        max_length=MOST_SCHEDULES,
        json_schema_extra={"additionalProperties": False},
        description="The queue's schedules, by name: a deployment puts them, and deletes those that are here no more.",
    )
    retry: Retry = Field(default=Retry(), description="When workers of Dueline's library try a job again that failed.")

    @field_validator("message_retention_days")
    @classmethod
    def _leaves_dead_letters_a_day(cls, days: int) -> int:
        if days > MOST_RETENTION_DAYS:
            raise ValueError(
                f"it must be at most {MOST_RETENTION_DAYS}: SQS deletes a dead letter 14 days after the job was first"
                " sent, and somebody must have a day to see it"
            )
        return days

    @model_validator(mode="after")
    def _schedules_fit(self) -> Self:
        for name, schedule in self.schedules.items():
            if schedule.priority > self.priorities:
                place = f"schedules.{name}.priority is {schedule.priority}"
                raise ValueError(f"{place}: it must be from 1 to priorities, which is {self.priorities}")
        return self

    @model_validator(mode="after")
    def _schedules_fit_a_template(self) -> Self:
        # A template is a JSON text itself, in which each quote and backslash is escaped once more.
        total = sum(len(json.dumps(schedule.declared)) for schedule in self.schedules.values())
        if total > MOST_SCHEDULE_BYTES:
            raise ValueError(
                f"schedules take {total} bytes of their stack's template: they may take {MOST_SCHEDULE_BYTES}, so put"
                " those with large payloads by `dueline schedules apply`"
            )
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
        # Counted from its receipt, SQS hides a message no longer.
        most = MAX_HIDDEN_SECONDS - self.retry.max_delay
        if self.longest_run > most:
            raise ValueError(
                f"longest_run is {self.longest_run}: it must be at most {MAX_HIDDEN_SECONDS} less retry.max_delay,"
                f" which is {most}"
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
    def partitions_needed(self) -> int:
        """How many partitions carry the rate that is expected.

        >>> Queue(partitions=2, expected_rate=1001).partitions_needed
        3
        """
        return -(-(self.expected_rate or 0) // JOBS_PER_PARTITION)

    @property
    def receives(self) -> int:
        """After how many receives SQS moves a message to the dead-letter queue."""
        return self.max_receives or min(MOST_RECEIVES, self.retry.attempts + RECEIVES_TO_SPARE)
