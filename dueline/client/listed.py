"""Jobs that are listed, as a client returns them: with their payloads and attributes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dueline.client.answers import Job, number_of, read_from, text_of
from dueline.model import job as core
from dueline.model.job import State
from dueline.model.pointer import Pointer
from dueline.model.request import json_text


@dataclass(frozen=True, kw_only=True, slots=True)
class PayloadPlace:
    """Where a large payload is kept: the bucket and key of an S3 object, and its size in bytes."""

    bucket: str
    key: str
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledJob(Job):
    """A job that waits in the table, with its `payload`, or where a large payload is kept (`payload_at`).

    A payload that is not JSON is in `payload_text`.
    """

    payload: object = field(default=None, repr=False)
    payload_text: str | None = field(default=None, repr=False)
    payload_at: PayloadPlace | None = None
    tenant: str | None = None
    priority: int = 1
    traceparent: str | None = None

    @classmethod
    def waiting(cls, job: core.Job) -> "ScheduledJob":
        """Return a job that waits in the table, as the client returns it."""
        at: dict[str, Any] = {"id": str(job.id), "queue": job.id.queue, "route": job.id.route, "state": State.SCHEDULED}
        return cls(**at, due=job.id.due, **attributes(job), **_payload_of(payload_fields(job)))

    @classmethod
    def _further_fields(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return _payload_of(answer) | {name: read(answer[name]) for name, read in _ATTRIBUTES.items() if name in answer}


def page_of(answer: Any) -> tuple[list[ScheduledJob], str]:
    """Return the jobs of a page, and where the next one begins: "" after the last. Raises Unavailable."""
    return read_from(
        lambda page: ([ScheduledJob.of(job) for job in page["jobs"]], page["next"] or ""), answer, what="jobs"
    )


def _payload_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    inline = {name: answer[name] for name in ("payload", "payload_text") if name in answer}
    return inline | ({"payload_at": PayloadPlace(**answer["payload_at"])} if "payload_at" in answer else {})


def attributes(job: core.Job) -> dict[str, Any]:
    """Return what a job is besides its id and its payload, as far as it is something."""
    told = {name: getattr(job, name) for name in ("tenant", "priority", "schedule", "nominal")}
    told["traceparent"] = job.trace and job.trace.parent
    return {name: value for name, value in told.items() if value is not None}


def payload_fields(job: core.Job) -> dict[str, Any]:
    """Return a job's payload as JSON, or where it is kept, or as text where it is neither.

    Whoever sends to the inbound queue directly may send any text.
    """
    try:
        if job.offloaded_bytes is not None:
            place = Pointer.parse(job.payload)
            return {"payload_at": {"bucket": place.bucket, "key": place.key, "bytes": job.offloaded_bytes}}
        value = json.loads(job.payload)
        json_text(value)  # what JSON cannot write, such as NaN, or reads no deeper, fails here and not below
    except (ValueError, RecursionError):
        return {"payload_text": job.payload}
    return {"payload": value}


_ATTRIBUTES: Mapping[str, Callable[[Any], Any]] = {"tenant": text_of, "priority": number_of, "traceparent": text_of}
