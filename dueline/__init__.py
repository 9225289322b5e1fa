"""Dueline: a distributed delayed-job queue, serverless on AWS."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dueline.answers import Job
    from dueline.client import Client
    from dueline.errors import (
        AlreadyFinished,
        DeploymentNotFound,
        DuelineError,
        Forbidden,
        InvalidJob,
        JobNotFound,
        KeyReused,
        PayloadTooLarge,
        QueueNotFound,
        Throttled,
        Unavailable,
    )
    from dueline.job import Route, State
    from dueline.new_job import NewJob
    from dueline.retry import Patience

__version__ = "0.1.0"
__all__ = [
    "AlreadyFinished",
    "Client",
    "DeploymentNotFound",
    "DuelineError",
    "Forbidden",
    "InvalidJob",
    "Job",
    "JobNotFound",
    "KeyReused",
    "NewJob",
    "Patience",
    "PayloadTooLarge",
    "QueueNotFound",
    "Route",
    "State",
    "Throttled",
    "Unavailable",
]
_ELSEWHERE = {
    "Client": "dueline.client",
    "Job": "dueline.answers",
    "NewJob": "dueline.new_job",
    "Patience": "dueline.retry",
    "Route": "dueline.job",
    "State": "dueline.job",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # The functions import this package at every cold start, and need nothing of the client.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_ELSEWHERE.get(name, "dueline.errors")), name)
