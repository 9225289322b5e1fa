"""The API's operations on jobs: a route is an entry here, and a test holds them to the routes that there are."""

from http import HTTPStatus

from dueline.model.job import State
from functions.http import forms, job_answers, listed_jobs, query_strings
from functions.http.openapi import examples
from functions.http.openapi.operation import Body, Operation

_ALL = ("look_up", "reschedule", "cancel")
_CANCELLED = Body(
    form=job_answers.JobAnswer,
    description="`cancelled`: a promise, the job never reaches its queue.",
    examples={"cancelled": examples.job(State.CANCELLED)},
    leads_to=("look_up",),
)
_REQUESTED = Body(
    form=job_answers.JobAnswer,
    description="`cancel_requested`: it is in its queue or may be on its way there. Workers that ask still skip it.",
    examples={"requested": examples.job(State.CANCEL_REQUESTED)},
    leads_to=("look_up",),
)

JOB_OPERATIONS = (
    Operation(
        id="schedule",
        method="post",
        path="/queues/{queue}/jobs",
        tag="jobs",
        summary="Schedule a job, or up to 500",
        description="This job, to that queue, at that time: it is handed over at that second, never early.",
        keyed=True,
        traced=True,
        body=Body(
            form=forms.JobBody | forms.JobsBody,
            description="A job, or up to 500 of them under `jobs`.",
            examples=examples.posted(),
        ),
        answers={
            HTTPStatus.CREATED: Body(
                form=job_answers.JobAnswer,
                description="The job is scheduled: on its way to the table, or in its queue already.",
                examples={"accepted": examples.job(State.ACCEPTED), "dispatched": examples.job(State.DISPATCHED)},
                leads_to=_ALL,
            ),
            HTTPStatus.OK: Body(
                form=job_answers.JobAnswer | job_answers.Results,
                description="A repeat under the same key: the first job, and nothing was sent. Or the results of many.",
                examples={"repeat": examples.job(State.SCHEDULED), "many": examples.results(State.ACCEPTED)},
            ),
        },
        refused=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            HTTPStatus.UNPROCESSABLE_ENTITY,
        ),
    ),
    Operation(
        id="upload",
        method="post",
        path="/queues/{queue}/uploads",
        tag="jobs",
        summary="Begin the upload of a large payload",
        description="Tell how to send a payload of up to 10 MiB to S3, of which a job is to be made. Over 5 MB there is"
        " no other way.",
        body=Body(
            form=forms.UploadBody,
            description="What is to be uploaded: S3 takes exactly this.",
            examples={"upload": {"bytes": 6_000_000, "sha256": examples.SHA256}},
        ),
        answers={
            HTTPStatus.CREATED: Body(
                form=job_answers.UploadAnswer,
                description="The upload, and how to send it.",
                examples={"begun": examples.upload()},
            )
        },
        refused=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
    Operation(
        id="list_scheduled",
        method="get",
        path="/queues/{queue}/jobs",
        tag="jobs",
        summary="List what is scheduled",
        description="The jobs of a queue that are in the table, in due order, with their payloads.",
        query=query_strings.JobsQuery,
        answers={
            HTTPStatus.OK: Body(
                form=listed_jobs.Page,
                description="A page of jobs.",
                examples={"page": examples.page(), "last": examples.last_page()},
            )
        },
        refused=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
    ),
    Operation(
        id="look_up",
        method="get",
        path="/queues/{queue}/jobs/{id}",
        tag="jobs",
        summary="Look a job up",
        description="Tell how far a job has come.",
        answers={
            HTTPStatus.OK: Body(
                form=job_answers.JobAnswer,
                description="The job, the one that took its place, if it was rescheduled, and its attempts, if its"
                " queue tracks.",
                examples={
                    "scheduled": examples.job(State.SCHEDULED),
                    "moved": examples.moved(),
                    "failed": examples.failed(),
                },
                leads_to=("reschedule", "cancel"),
            )
        },
        refused=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        id="reschedule",
        method="patch",
        path="/queues/{queue}/jobs/{id}",
        tag="jobs",
        summary="Reschedule a job",
        description="Move a job to another time, in one step: a new job takes its place. While it is on its way to the"
        " table, 503 `not_yet`, and as well if nobody ever scheduled it: an id alone does not tell. A `delay` is"
        " counted by the API's clock, from the first call under a key.",
        keyed=True,
        body=Body(
            form=forms.TimeBody,
            description="The new time.",
            examples={"at": {"at": "2027-01-05T09:00:00+01:00"}, "delay": {"delay": 3600}},
        ),
        answers={
            HTTPStatus.OK: Body(
                form=job_answers.JobAnswer,
                description="The job that took its place: a promise that the old one never comes.",
                examples={"moved": examples.successor()},
                leads_to=_ALL,
            )
        },
        refused=(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        ),
    ),
    Operation(
        id="cancel",
        method="delete",
        path="/queues/{queue}/jobs/{id}",
        tag="jobs",
        summary="Cancel (unschedule) a job",
        description="Take a job back. It does not ask whether there is one: a cancel that overtakes its job holds."
        " 404 where no job can be: in a partition that the queue never had.",
        answers={HTTPStatus.OK: _CANCELLED, HTTPStatus.ACCEPTED: _REQUESTED},
        refused=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        id="cancel_many",
        method="post",
        path="/queues/{queue}/cancellations",
        tag="jobs",
        summary="Cancel (unschedule) up to 500 jobs",
        description="Take jobs back, each for itself.",
        body=Body(form=forms.IdsBody, description="The ids of the jobs.", examples={"ids": {"ids": [examples.ID]}}),
        answers={
            HTTPStatus.OK: Body(
                form=job_answers.Results,
                description="For each, in order, the job with what is promised of it, or what is wrong.",
                examples={"cancelled": examples.results(State.CANCELLED)},
            )
        },
        refused=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
)
