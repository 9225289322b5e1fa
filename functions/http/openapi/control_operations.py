"""The operations that control a queue's workers."""

from http import HTTPStatus
from typing import Any

from functions.http.control_answers import ControlAnswer
from functions.http.forms import RateBody
from functions.http.openapi import examples
from functions.http.openapi.operation import Operation, Told


def _holds(**told: Any) -> Told:
    return Told(form=ControlAnswer, means="What holds for its workers now.", examples=told)


CONTROL = (
    Operation(
        id="pause",
        method="post",
        path="/queues/{queue}/pause",
        tag="queues",
        summary="Pause a queue",
        means="Let its workers, those that use the library, begin no more jobs: they heed it within 5 seconds. Jobs go"
        " on being scheduled and handed to the queue.",
        answers={HTTPStatus.OK: _holds(paused=examples.control(paused=True))},
        refused=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        id="resume",
        method="post",
        path="/queues/{queue}/resume",
        tag="queues",
        summary="Resume a queue",
        means="Let its workers go on, as fast as its rate allows.",
        answers={HTTPStatus.OK: _holds(resumed=examples.control(), limited=examples.control(rate="50/s"))},
        refused=(HTTPStatus.NOT_FOUND,),
    ),
    Operation(
        id="set_rate",
        method="put",
        path="/queues/{queue}/rate",
        tag="queues",
        summary="Limit a queue's rate",
        means="Limit how many jobs its workers, those that use the library, begin, all of them together, or lift the"
        " limit: they heed it within 5 seconds.",
        body=Told(
            form=RateBody,
            means="The rate.",
            examples={"limit": {"rate": "50/s"}, "none": {"rate": None}, "stop": {"rate": "0/s"}},
        ),
        answers={HTTPStatus.OK: _holds(limited=examples.control(rate="50/s"), lifted=examples.control())},
        refused=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ),
)
