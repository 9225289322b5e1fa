"""Examples for readers, made by the code that makes the real answers."""

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

from dueline import errors
from dueline.core import instant
from dueline.core.job import JobId, Route, State, StoredJob
from dueline.core.listing import JobPage, TrackedPage
from dueline.core.overview import Control, Overview
from dueline.core.payloads import StartedUpload, Upload
from dueline.core.ports import Depth
from dueline.core.queue_settings import QueueSettings, Rate
from dueline.core.status import Outcome, Status
from dueline.functions.http import answers, problems
from dueline.schedules import answers as schedule_answers
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head
from dueline.schedules.queries import RunRecord, RunState, ScheduleList

ID = "emails.0.t.1799049600000.0d6a387e-6d3b-4b8e-9f51-3d7c1f0a2b4c"
MOVED = "emails.0.t.1799136000000.7c9e6679-7425-40de-944b-e07fc1f90ae7"
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_JOB = JobId.parse(ID)
_DIRECT = replace(_JOB, route=Route.DIRECT)
_RETENTION = timedelta(days=7)
_QUEUE = QueueSettings(name="emails", partitions=1, retention=_RETENTION)
_DIRECT_HORIZON = 890
_PAYLOAD = {"to": "ann"}
SCHEDULE = {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "payload": {"digest": "daily"}}
EVERY = {"every": 900, "overlap": "skip", "owner": "emails-service"}
_NOW = instant.parse("2027-01-01T12:00:00Z")
_HEAD = Head(
    queue="emails",
    name="digest",
    definition=Definition.from_dict({**SCHEDULE, "payload": '{"digest":"daily"}'}),
    generation=1,
    start=_NOW,
    partition=_JOB.partition,
    planned_to=_JOB.due,
    retention=_RETENTION,
)
_UPLOAD = Upload(uid=_JOB.uid, bytes=6_000_000, sha256=SHA256)


def job(state: State) -> Any:
    return answers.job_answer(_DIRECT if state is State.DISPATCHED else _JOB, state)


def scheduled(state: State, *, created: bool = True) -> Any:
    return {**job(state), "created": created}


def several(one: Any) -> Any:
    """Return a job of several beside one that was refused."""
    return {"jobs": [one, {"error": problems.problem(errors.InvalidJob("payload is missing"))}]}


def control(*, paused: bool = False, rate: str | None = None) -> Any:
    limit = None if rate is None else Rate.parse(rate)
    return answers.control_answer("emails", Control(paused=paused, rate=limit))


def schedule(*, paused: bool = False, deleted: bool = False) -> Any:
    generation = 2 if paused or deleted else 1
    head = replace(_HEAD, paused=paused, deleted=deleted, generation=generation)
    return schedule_answers.schedule_fields(head, now=_NOW)


POSTED: dict[str, Any] = {
    "at": {"payload": _PAYLOAD, "at": "2027-01-04T09:00:00+01:00", "tenant": "customer-7", "priority": 1},
    "delay": {"payload": _PAYLOAD, "delay": 90},
    "now": {"payload": _PAYLOAD},
    "upload": {"upload": str(_UPLOAD), "delay": 3600},
    "key": {"payload": _PAYLOAD, "delay": 3600, "key": "welcome-ann"},
    "replace": {"payload": _PAYLOAD, "at": "2027-01-04T09:00:00Z", "key": "welcome-ann", "if_exists": "replace"},
    "id": {"payload": _PAYLOAD, "id": ID},
    "many": {"jobs": [{"payload": _PAYLOAD, "delay": 90}, {"payload": _PAYLOAD}]},
}
SUCCESSOR = answers.job_answer(JobId.parse(MOVED), State.SCHEDULED, moved_from=_JOB)
REPLACED = {**SUCCESSOR, "created": False, "moved_from": ID}
MOVED_JOB = answers.job_answer(JobId.parse(MOVED), State.DISPATCHED, moved_from=_JOB)
_WAITING = StoredJob(id=_JOB, payload='{"to":"ann"}', expires=_JOB.due + _RETENTION)
WAITING = answers.look_up_answer(_JOB, Status(state=State.SCHEDULED, job=replace(_WAITING, key="welcome-ann")))
PAGE = answers.page_of_jobs(JobPage(jobs=(_WAITING,), after="2027-01-04T08:00:00.000Z"))
# Of a queue that tracks.
_STARTED = instant.parse("2027-01-04T09:22:30.417Z")
_OUTCOME = Outcome(
    state=State.FAILED,
    attempts=10,
    started=_STARTED,
    ended=_STARTED + timedelta(seconds=1),
    error="TimeoutError",
    kind="welcome",
)
_TRACKED = _JOB, Status(state=_OUTCOME.state, outcome=_OUTCOME)
FAILED = answers.status_answer(*_TRACKED)
TRACKED_PAGE = answers.page_of_tracked(TrackedPage(jobs=(_TRACKED,), before="2027-01-04T08:00:00.000Z"))
UPLOAD = answers.upload_answer(
    StartedUpload(
        upload=_UPLOAD,
        url=f"https://dueline-payloads-123456789012-eu-west-1.s3.amazonaws.com/{_UPLOAD.key('emails')}?X-Amz-Signature=…",
        headers={
            "content-length": "6000000",
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(SHA256)).decode(),
        },
        expires=_JOB.due,
    )
)
QUEUES = {"queues": [answers.queue_answer(_QUEUE, taking=1, direct_horizon=_DIRECT_HORIZON)]}
_OVERVIEW = Overview(
    scheduled=7,
    more_scheduled=False,
    next_due=instant.parse("2027-01-04T08:00:00Z"),
    fence_age=42.5,
    levels=(Depth(waiting=3, in_flight=1, delayed=2),),
    dead=0,
)
OVERVIEW = answers.overview_answer(_QUEUE, _OVERVIEW, taking=1, direct_horizon=_DIRECT_HORIZON)
SCHEDULES = schedule_answers.page_fields(ScheduleList(heads=(_HEAD,), after="digest"), now=_NOW)
PREVIEW = {
    "words": _HEAD.definition.rule.words,
    "next": schedule_answers.next_fields(_HEAD.definition.rule, after=_NOW),
}
RUN = {"id": ID, "scheduled_for": instant.text(_JOB.due)}
_RAN = _JOB.due + timedelta(seconds=0.417)
_RUN = RunRecord(
    id=_JOB,
    scheduled_for=_JOB.due,
    generation=1,
    state=RunState.SUCCEEDED,
    outcome=Outcome(state=State.SUCCEEDED, attempts=1, started=_RAN, ended=_RAN + timedelta(seconds=1)),
    lateness=0.417,
)
HISTORY = schedule_answers.history_fields([_RUN])
_moved = errors.AlreadyFinished(f"job {ID} was moved to {MOVED}: it can be moved no more")
_moved.job_id = MOVED
_lost = errors.Unavailable("the connection was lost")
_lost.job_id = ID
_ERRORS = [
    errors.InvalidJob("delay is -1: it must be from 0 to 315619200 seconds (10 years)"),
    errors.QueueNotFound("there is no queue 'email': it is not in queues.yaml"),
    errors.Forbidden("POST /queues/emails/pause: the alias 'q-emails' does not allow it"),
    errors.JobNotFound("no job has the id '7': it is not of the form of an id"),
    _moved,
    errors.PayloadTooLarge("payload has 10485761 bytes: at most 10485760 are allowed"),
    errors.IdReused(f"id is {ID!r}: it belongs to a job with another payload, kind, tenant or priority"),
    errors.KeyReused(f"key is 'welcome-ann': it was used for job {ID}, which has another payload"),
    errors.Throttled("slow down"),
    _lost,
    errors.NotYet(
        f"job {ID} is not in the table: it may still be on its way there, then try again in a moment; or no"
        " such job was ever scheduled"
    ),
    errors.InvalidSchedule("zone is 'Europe/Berlim': it must be the name of an IANA time zone"),
    errors.ScheduleNotFound("queue 'emails' has no schedule 'digest'"),
    errors.TooManySchedules("queue 'emails' has 10000 schedules: it may have no more"),
    errors.TooManyChanges(
        "schedule emails/digest was changed 20 times since 2027-01-03T18:40:00.000Z, and its jitter of 3600 s"
        " delays an earlier run to 2027-01-03T19:20:00.000Z: change it again from then on; a pause or delete goes"
        " at once"
    ),
    errors.RunOfSchedule(
        f"job {ID} is a run of schedule emails/digest: it cannot be rescheduled; cancel it, or run the schedule now"
    ),
    errors.ScheduleChanged("schedule 'digest' was changed since it was read"),
]
# A problem of each code.
REFUSALS = [*map(problems.problem, _ERRORS), problems.route_problem("/queue/emails")]
