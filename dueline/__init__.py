"""Dueline: a distributed delayed-job queue, serverless on AWS."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dueline.answers import Job, PayloadPlace, ScheduledJob
    from dueline.async_client import AsyncClient
    from dueline.client import Client
    from dueline.consumer import lambda_handler
    from dueline.control import Control
    from dueline.errors import (
        AlreadyFinished,
        DeploymentNotFound,
        DuelineError,
        Forbidden,
        InvalidJob,
        JobNotFound,
        KeyReused,
        NotYet,
        PayloadTooLarge,
        QueueNotFound,
        Throttled,
        Unavailable,
    )
    from dueline.job import Route, State
    from dueline.new_job import NewJob
    from dueline.overview import Overview
    from dueline.queue import QueueSettings
    from dueline.rate import Rate
    from dueline.retry import Patience
    from dueline.worker import Worker
    from dueline.working.received import ReceivedJob
    from dueline.working.verdict import Discard, Retry

__version__ = "0.1.0"
__all__ = [
    "AlreadyFinished",
    "AsyncClient",
    "Client",
    "Control",
    "DeploymentNotFound",
    "Discard",
    "DuelineError",
    "Forbidden",
    "InvalidJob",
    "Job",
    "JobNotFound",
    "KeyReused",
    "NewJob",
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
    "ScheduledJob",
    "State",
    "Throttled",
    "Unavailable",
    "Worker",
    "lambda_handler",
]
_ELSEWHERE = {
    "AsyncClient": "dueline.async_client",
    "Client": "dueline.client",
    "Control": "dueline.control",
    "Discard": "dueline.working.verdict",
    "Job": "dueline.answers",
    "NewJob": "dueline.new_job",
    "Overview": "dueline.overview",
    "Patience": "dueline.retry",
    "PayloadPlace": "dueline.answers",
    "QueueSettings": "dueline.queue",
    "Rate": "dueline.rate",
    "ReceivedJob": "dueline.working.received",
    "Retry": "dueline.working.verdict",
    "Route": "dueline.job",
    "ScheduledJob": "dueline.answers",
    "State": "dueline.job",
    "Worker": "dueline.worker",
    "lambda_handler": "dueline.consumer",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The functions import this package at every cold start, and need nothing of the client.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_ELSEWHERE.get(name, "dueline.errors")), name)
