"""Dueline: a distributed delayed-job queue, serverless on AWS."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dueline.aws.dynamodb import DynamoTable
    from dueline.client.async_client import AsyncClient, AsyncSchedules
    from dueline.client.client import Client
    from dueline.client.models import Job, NewJob, PayloadPlace, ScheduledJob
    from dueline.client.schedules import NextRun, Run, Schedule, Schedules, SubmittedRun
    from dueline.core.cancel import cancelled_among
    from dueline.core.job import JobId, Route, State
    from dueline.core.overview import Control, Overview
    from dueline.core.queue_settings import QueueSettings, Rate
    from dueline.core.retry import Patience
    from dueline.core.trace import TraceContext
    from dueline.errors import (
        AlreadyFinished,
        ClientTooOld,
        DeploymentNotFound,
        DeploymentTooOld,
        DuelineError,
        Forbidden,
        IdReused,
        InvalidJob,
        InvalidSchedule,
        JobExists,
        JobNotFound,
        KeyReused,
        NotYet,
        PayloadTooLarge,
        QueueNotFound,
        RunOfSchedule,
        ScheduleChanged,
        ScheduleNotFound,
        Throttled,
        TooManyChanges,
        TooManySchedules,
        Unavailable,
    )
    from dueline.worker.delivery import Discard, ReceivedJob, Retries, Retry
    from dueline.worker.lambda_consumer import lambda_handler
    from dueline.worker.worker import Worker

__version__ = "1.0.0"
__all__ = [
    "AlreadyFinished",
    "AsyncClient",
    "AsyncSchedules",
    "Client",
    "ClientTooOld",
    "Control",
    "DeploymentNotFound",
    "DeploymentTooOld",
    "Discard",
    "DuelineError",
    "DynamoTable",
    "Forbidden",
    "IdReused",
    "InvalidJob",
    "InvalidSchedule",
    "Job",
    "JobExists",
    "JobId",
    "JobNotFound",
    "KeyReused",
    "NewJob",
    "NextRun",
    "NotYet",
    "Overview",
    "Patience",
    "PayloadPlace",
    "PayloadTooLarge",
    "QueueNotFound",
    "QueueSettings",
    "Rate",
    "ReceivedJob",
    "Retries",
    "Retry",
    "Route",
    "Run",
    "RunOfSchedule",
    "Schedule",
    "ScheduleChanged",
    "ScheduleNotFound",
    "ScheduledJob",
    "Schedules",
    "State",
    "SubmittedRun",
    "Throttled",
    "TooManyChanges",
    "TooManySchedules",
    "TraceContext",
    "Unavailable",
    "Worker",
    "cancelled_among",
    "lambda_handler",
]
# Those of dueline.errors are not among them.
_PLACES = {
    "dueline.aws.dynamodb": ("DynamoTable",),
    "dueline.client.async_client": ("AsyncClient", "AsyncSchedules"),
    "dueline.client.client": ("Client",),
    "dueline.client.models": ("Job", "NewJob", "PayloadPlace", "ScheduledJob"),
    "dueline.client.schedules": ("NextRun", "Run", "Schedule", "Schedules", "SubmittedRun"),
    "dueline.core.cancel": ("cancelled_among",),
    "dueline.core.job": ("JobId", "Route", "State"),
    "dueline.core.overview": ("Control", "Overview"),
    "dueline.core.queue_settings": ("QueueSettings", "Rate"),
    "dueline.core.retry": ("Patience",),
    "dueline.core.trace": ("TraceContext",),
    "dueline.worker.delivery": ("Discard", "ReceivedJob", "Retries", "Retry"),
    "dueline.worker.lambda_consumer": ("lambda_handler",),
    "dueline.worker.worker": ("Worker",),
}
_ELSEWHERE = {name: module for module, names in _PLACES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The functions import this package at every cold start, and need nothing of the client.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with import_module("dueline.errors").missing_extras_named():
            return getattr(import_module(_ELSEWHERE.get(name, "dueline.errors")), name)
