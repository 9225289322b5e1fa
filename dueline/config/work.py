"""The settings that a queue's stack publishes for clients and workers, as JSON in an SSM parameter."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dueline import __version__
from dueline.config.registry import settings_from, settings_of
from dueline.errors import QueueNotFound
from dueline.model.retry_policy import Backoff, RetryPolicy
from dueline.model.work_settings import WorkSettings

_PLAIN = ("dead_letters", "visibility_timeout", "longest_run", "max_receives")


def published(settings: WorkSettings, *, expected_rate: int | None = None) -> dict[str, Any]:
    """Return what is published of a queue. Times are in seconds.

    Clients read all but `work` and `told`, which `dueline doctor` compares with what it sees.
    """
    retry = asdict(settings.retry) | {"backoff": settings.retry.backoff.value}
    work = {name: getattr(settings, name) for name in _PLAIN} | {"retry": retry}
    urls = list(settings.urls)
    told = {"version": __version__} | ({} if expected_rate is None else {"expected_rate": expected_rate})
    return {"url": urls[0], "urls": urls, **settings_of(settings.queue), "work": work, "told": told}


def work_settings_from(parameter: Mapping[str, Any], *, name: str) -> WorkSettings:
    """Return the settings that `published` wrote; further fields are ignored.

    Raises QueueNotFound when an older version wrote it, without settings for workers.
    """
    if "work" not in parameter:
        raise QueueNotFound(f"queue {name!r} publishes no settings for workers: deploy it with this version of Dueline")
    work = parameter["work"]
    retry = {field: work["retry"][field] for field in ("attempts", "delay", "max_delay")}
    return WorkSettings(
        queue=settings_from(parameter, name=name),
        urls=tuple(parameter["urls"]),
        retry=RetryPolicy(backoff=Backoff(work["retry"]["backoff"]), **retry),
        **{field: work[field] for field in _PLAIN},
    )
