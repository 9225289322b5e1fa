"""What is told of jobs and queues, as the bodies of HTTP answers."""

import json
from dataclasses import asdict
from typing import Any

from dueline import instant
from dueline.job import Job, JobId, State
from dueline.listing import Listed, place_text
from dueline.overview import Overview
from dueline.submit import json_text

Answer = dict[str, Any]


def of_job(id: JobId, state: State, *, moved_to: JobId | None = None) -> Answer:
    told = {
        "id": str(id),
        "queue": id.queue,
        "due": instant.text(id.due),
        "route": id.route.name.lower(),
        "state": state.value,
    }
    return told | ({"moved_to": str(moved_to)} if moved_to else {})


def of_page(listed: Listed) -> Answer:
    """Return a page of scheduled jobs with their payloads, and where the next one begins, which may be nowhere."""
    jobs = [of_job(job.id, State.SCHEDULED) | _payload_of(job) for job in listed.jobs]
    return {"jobs": jobs, "next": None if listed.after is None else place_text(listed.after)}


def of_overview(told: Overview) -> Answer:
    """Return what is told of a queue; of each of its levels, if it has several."""
    levels = [{"priority": number, **asdict(depth)} for number, depth in enumerate(told.levels, start=1)]
    return {
        "scheduled": told.scheduled,
        "more_scheduled": told.more_scheduled,
        "next_due": told.next_due and instant.text(told.next_due),
        "fence_age": told.fence_age,
        **asdict(told.depth),
        **({"levels": levels} if len(levels) > 1 else {}),
        "dead": told.dead,
    }


def _payload_of(job: Job) -> Answer:
    """Return a payload as JSON, or as text where it is none: whoever sends to the inbound queue may send any text."""
    try:
        value = json.loads(job.payload)
        json_text({"jobs": [{"payload": value}]})  # what cannot be told again, such as NaN, fails here and not below
    except (ValueError, RecursionError):
        return {"payload_text": job.payload}
    return {"payload": value}
