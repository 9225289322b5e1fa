"""The parameters of requests, and a header of answers, as the OpenAPI document describes them."""

from dueline.model.job import QUEUE_NAME
from dueline.model.nominal import SCHEDULE_NAME
from dueline.protocol.keys import MAX_CHARACTERS
from functions.http.openapi.examples import ID
from functions.http.openapi.schemas import Json

PARAMETERS: Json = {
    "queue": {
        "name": "queue",
        "in": "path",
        "required": True,
        "description": "The queue's name in queues.yaml.",
        "schema": {"type": "string", "pattern": f"^{QUEUE_NAME}$"},
        "example": "emails",
    },
    "schedule": {
        "name": "schedule",
        "in": "path",
        "required": True,
        "description": "The schedule's name.",
        "schema": {"type": "string", "pattern": f"^{SCHEDULE_NAME}$"},
        "example": "digest",
    },
    "id": {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The job's id, as its answer told it.",
        "schema": {"type": "string", "minLength": 1},
        "example": ID,
    },
    "key": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The idempotency key of one job, as `key` in its body; or of one reschedule, whose repeats"
        " tell of the same job.",
        "schema": {"type": "string", "pattern": f"^[!-~]([ -~]{{0,{MAX_CHARACTERS - 2}}}[!-~])?$"},
        "example": "welcome-ann",
    },
    "if-match": {
        "name": "If-Match",
        "in": "header",
        "description": "The `ETag` of an earlier answer, or several with commas between: 412 if the schedule was"
        " changed since. `*` is any schedule; a weak tag (`W/`) matches none.",
        "schema": {"type": "string"},
        "example": "*",
    },
    "if-none-match": {
        "name": "If-None-Match",
        "in": "header",
        "description": "`*`: only create it, 412 if it is there already.",
        "schema": {"type": "string", "enum": ["*"]},
        "example": "*",
    },
    "traceparent": {
        "name": "traceparent",
        "in": "header",
        "description": "The W3C trace context that the messages of the jobs carry. One that is no good is none.",
        "schema": {"type": "string"},
        "example": "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01",
    },
    "tracestate": {
        "name": "tracestate",
        "in": "header",
        "description": "The rest of that trace context, up to 512 characters.",
        "schema": {"type": "string"},
        "example": "vendor=7",
    },
}
ENTITY_TAG: Json = {
    "description": "The schedule's generation, for `If-Match`.",
    "schema": {"type": "string"},
    "example": '"1-1798707600000"',
}
