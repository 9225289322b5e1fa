"""The API's operations on queues: a route is an entry here, and a test holds them to the routes that there are."""

from http import HTTPStatus
from typing import Any

from functions.http import queue_answers
from functions.http.forms import RateBody
from functions.http.openapi import examples
from functions.http.openapi.operation import Body, Operation


def _controls(**shown: Any) -> Body:
    return Body(form=queue_answers.ControlAnswer, description="What holds for its workers now.", examples=shown)


QUEUE_OPERATIONS = (
    Operation(
        id="list_queues",
        method="get",
        path="/queues",
        tag="queues",
        summary="List the queues",
        description="The queues of the deployment, with their settings, and what the ids of their jobs are made of.",
        answers={
            HTTPStatus.OK: Body(
                form=queue_answers.Queues, description="All queues.", examples={"queues": examples.queues()}
            )
        },
    ),
    Operation(
        id="tell_queue",
        method="get",
        path="/queues/{queue}",
        tag="queues",
        summary="Tell how a queue is doing",
        description="A queue's settings, and how many of its jobs are where, at a cost that does not grow with them.",
        answers={
            HTTPStatus.OK: Body(
                form=queue_answers.OverviewAnswer, description="The queue.", examples={"overview": examples.overview()}
            )
        },
        refused=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        id="pause",
        method="post",
        path="/queues/{queue}/pause",
        tag="queues",
        summary="Pause a queue",
        description="Let its workers, those that use the library, begin no more jobs: they heed it within 5 seconds."
        " Jobs go on being scheduled and handed to the queue.",
        answers={HTTPStatus.OK: _controls(paused=examples.control(paused=True))},
        refused=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        id="resume",
        method="post",
        path="/queues/{queue}/resume",
        tag="queues",
        summary="Resume a queue",
        description="Let its workers go on, as fast as its rate allows.",
        answers={HTTPStatus.OK: _controls(resumed=examples.control(), limited=examples.control(rate="50/s"))},
        refused=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        id="set_rate",
        method="put",
        path="/queues/{queue}/rate",
        tag="queues",
        summary="Limit a queue's rate",
        description="Limit how many jobs its workers, those that use the library, begin, all of them together, or lift"
        " the limit: they heed it within 5 seconds.",
        body=Body(
            form=RateBody,
            description="The rate.",
            examples={"limit": {"rate": "50/s"}, "none": {"rate": None}, "stop": {"rate": "0/s"}},
        ),
        answers={HTTPStatus.OK: _controls(limited=examples.control(rate="50/s"), lifted=examples.control())},
        refused=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
)
