"""Dueline: a distributed delayed-job queue, serverless on AWS."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dueline.aws.dynamodb.table import DynamoTable
    from dueline.client.answers import Job
    from dueline.client.async_client import AsyncClient
    from dueline.client.async_schedules import AsyncSchedules
    from dueline.client.client import Client
    from dueline.client.listed import PayloadPlace, ScheduledJob
    from dueline.client.new_job import NewJob
    from dueline.client.schedule_answers import NextRun, Run, Schedule, SubmittedRun
    from dueline.client.schedules import Schedules
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
    from dueline.lookup.control import Control
    from dueline.lookup.overview import Overview
    from dueline.model.job import JobId, Route, State
    from dueline.model.queue_settings import QueueSettings
    from dueline.model.rate import Rate
    from dueline.model.trace import TraceContext
    from dueline.retry.patience import Patience
    from dueline.worker.consumer import lambda_handler
    from dueline.worker.received import ReceivedJob
    from dueline.worker.verdict import Discard, Retry
    from dueline.worker.worker import Worker

__version__ = "0.1.0"
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
    "lambda_handler",
]
_ELSEWHERE = {
    "AsyncClient": "dueline.client.async_client",
    "AsyncSchedules": "dueline.client.async_schedules",
    "Client": "dueline.client.client",
    "Control": "dueline.lookup.control",
    "Discard": "dueline.worker.verdict",
    "DynamoTable": "dueline.aws.dynamodb.table",
    "Job": "dueline.client.answers",
    "JobId": "dueline.model.job",
    "NewJob": "dueline.client.new_job",
    "NextRun": "dueline.client.schedule_answers",
    "Overview": "dueline.lookup.overview",
    "Patience": "dueline.retry.patience",
    "PayloadPlace": "dueline.client.listed",
    "QueueSettings": "dueline.model.queue_settings",
    "Rate": "dueline.model.rate",
    "ReceivedJob": "dueline.worker.received",
    "Retry": "dueline.worker.verdict",
    "Route": "dueline.model.job",
    "Run": "dueline.client.schedule_answers",
    "Schedule": "dueline.client.schedule_answers",
    "ScheduledJob": "dueline.client.listed",
    "Schedules": "dueline.client.schedules",
    "State": "dueline.model.job",
    "SubmittedRun": "dueline.client.schedule_answers",
    "TraceContext": "dueline.model.trace",
    "Worker": "dueline.worker.worker",
    "lambda_handler": "dueline.worker.consumer",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The functions import this package at every cold start, and need nothing of the client.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_ELSEWHERE.get(name, "dueline.errors")), name)
