"""Examples for readers, made by the code that makes the real answers."""

import base64
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from dueline.errors import InvalidJob
from dueline.lookup.control import Control
from dueline.lookup.listing import Listed
from dueline.lookup.outcome import Outcome
from dueline.lookup.overview import Overview
from dueline.model import instant
from dueline.model.job import Job, JobId, Route, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate
from dueline.ports import Depth
from dueline.protocol.uploads import Begun, Upload
from functions.http import job_answers, listed_jobs, problems, queue_answers

ID = "emails.0.t.1799049600000.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"
MOVED = "emails.0.t.1799136000000.7c9e6679-7425-40de-944b-e07fc1f90ae7"
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_JOB = JobId.parse(ID)
_DIRECT = replace(_JOB, route=Route.DIRECT)
_RETENTION = timedelta(days=7)
_QUEUE = QueueSettings(name="emails", partitions=1, retention=_RETENTION)
_DIRECT_HORIZON = 890
_PAYLOAD = {"to": "ann"}


def job(state: State) -> Any:
    return job_answers.job_answer(_DIRECT if state is State.DISPATCHED else _JOB, state)


def successor() -> Any:
    return job_answers.job_answer(JobId.parse(MOVED), State.SCHEDULED)


def moved() -> Any:
    return job_answers.job_answer(_JOB, State.CANCELLED, moved_to=JobId.parse(MOVED))


def failed() -> Any:
    """Return a job of a queue that tracks."""
    began = instant.parse("2027-01-04T09:22:30.417Z")
    ended = began + timedelta(seconds=1)
    outcome = Outcome(state=State.FAILED, attempts=10, started=began, ended=ended, error="TimeoutError")
    return job_answers.job_answer(_JOB, outcome.state, outcome=outcome)


def upload() -> Any:
    begun = Upload(uid=_JOB.uid, bytes=6_000_000, sha256=SHA256)
    headers = {"content-length": "6000000", "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(SHA256)).decode()}
    url = f"https://dueline-payloads-123456789012-eu-west-1.s3.amazonaws.com/{begun.key('emails')}?X-Amz-Signature=…"
    return job_answers.upload_answer(Begun(upload=begun, url=url, headers=headers, expires=_JOB.due))


def results(state: State) -> Any:
    return {"jobs": [job(state), {"error": problems.problem(InvalidJob("payload is missing"))}]}


def page() -> Any:
    scheduled = Job(id=_JOB, payload='{"to":"ann"}', expires=_JOB.due + _RETENTION)
    return listed_jobs.page_of_jobs(Listed(jobs=(scheduled,), after="2027-01-04T08:00:00.000Z"))


def last_page() -> Any:
    return listed_jobs.page_of_jobs(Listed(jobs=(), after=None))


def queues() -> Any:
    return {"queues": [queue_answers.queue_answer(_QUEUE, taking=1, direct_horizon=_DIRECT_HORIZON)]}


def overview() -> Any:
    depth = Depth(waiting=3, in_flight=1, delayed=2)
    due: datetime = instant.parse("2027-01-04T08:00:00Z")
    doing = Overview(scheduled=7, more_scheduled=False, next_due=due, fence_age=42.5, levels=(depth,), dead=0)
    return queue_answers.overview_answer(_QUEUE, doing, taking=1, direct_horizon=_DIRECT_HORIZON)


def control(*, paused: bool = False, rate: str | None = None) -> Any:
    limit = None if rate is None else Rate.parse(rate)
    return queue_answers.control_answer("emails", Control(paused=paused, rate=limit))


def posted() -> dict[str, Any]:
    at = {"payload": _PAYLOAD, "at": "2027-01-04T09:00:00+01:00", "tenant": "customer-7", "priority": 1}
    return {
        "at": at,
        "delay": {"payload": _PAYLOAD, "delay": 90},
        "now": {"payload": _PAYLOAD},
        "upload": {"upload": str(Upload(uid=_JOB.uid, bytes=6_000_000, sha256=SHA256)), "delay": 3600},
        "key": {"payload": _PAYLOAD, "delay": 3600, "key": "welcome-ann"},
        "id": {"payload": _PAYLOAD, "id": ID},
        "many": {"jobs": [{"payload": _PAYLOAD, "delay": 90}, {"payload": _PAYLOAD}]},
    }
