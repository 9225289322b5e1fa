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
    from dueline.worker.delivery import Discard, ReceivedJob, Retry
    from dueline.worker.lambda_consumer import lambda_handler
    from dueline.worker.retries import Retries
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
_ELSEWHERE = {
    "AsyncClient": "dueline.client.async_client",
    "AsyncSchedules": "dueline.client.async_client",
    "Client": "dueline.client.client",
    "Control": "dueline.core.overview",
    "Discard": "dueline.worker.delivery",
    "DynamoTable": "dueline.aws.dynamodb",
    "Job": "dueline.client.models",
    "JobId": "dueline.core.job",
    "NewJob": "dueline.client.models",
    "NextRun": "dueline.client.schedules",
    "Overview": "dueline.core.overview",
    "Patience": "dueline.core.retry",
    "PayloadPlace": "dueline.client.models",
    "QueueSettings": "dueline.core.queue_settings",
    "Rate": "dueline.core.queue_settings",
    "ReceivedJob": "dueline.worker.delivery",
    "Retries": "dueline.worker.retries",
    "Retry": "dueline.worker.delivery",
    "Route": "dueline.core.job",
    "Run": "dueline.client.schedules",
    "Schedule": "dueline.client.schedules",
    "ScheduledJob": "dueline.client.models",
    "Schedules": "dueline.client.schedules",
    "State": "dueline.core.job",
    "SubmittedRun": "dueline.client.schedules",
    "TraceContext": "dueline.core.trace",
    "Worker": "dueline.worker.worker",
    "cancelled_among": "dueline.core.cancel",
    "lambda_handler": "dueline.worker.lambda_consumer",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The functions import this package at every cold start, and need nothing of the client.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with import_module("dueline.errors").missing_extras_named():
            return getattr(import_module(_ELSEWHERE.get(name, "dueline.errors")), name)
