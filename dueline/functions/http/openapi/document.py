"""docs/openapi.json, written from the types of requests and answers."""

import ast
import inspect
import json
from collections.abc import Mapping
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

import dueline
from dueline.core.job import MAX_KEY_CHARACTERS, QUEUE_NAME, SCHEDULE_NAME
from dueline.functions.http import answers, problems, requests, schedule_models
from dueline.functions.http.openapi.examples import ID, REFUSALS
from dueline.functions.http.openapi.operations import OPERATIONS, Body, Operation
from dueline.functions.http.schedule_models import ScheduleAnswer

_TEMPLATE = "#/components/schemas/{model}"
Json = dict[str, Any]
PATH = Path(__file__).parents[4] / "docs" / "openapi.json"
_INFO: Json = {
    "title": "Dueline",
    "version": dueline.__version__,
    "summary": "A distributed delayed-job queue, serverless on AWS.",
    "description": "This job, to that queue, at that time, months ahead if need be, and taken back if you change your"
    " mind. Requests are signed with AWS's Signature Version 4; IAM allows a caller one queue's paths. The body's"
    " content type does not matter: it is read as JSON.",
    "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
}
_SERVERS: list[Json] = [
    {"url": "/", "description": "where this document is served: a local run (`make up`), which signs for you"},
    {
        "url": "https://{api}.execute-api.{region}.amazonaws.com",
        "description": "on AWS: an output of the core stack",
        "variables": {"api": {"default": "api-id"}, "region": {"default": "us-east-1"}},
    },
]
_TAGS: list[Json] = [
    {"name": "jobs", "description": "Schedule jobs, look them up, list, reschedule and cancel (unschedule) them."},
    {"name": "schedules", "description": "Recurring jobs of a queue, by a rule."},
    {"name": "queues", "description": "What queues there are, how they are doing, and how fast their workers go."},
]
# Source: "Controlling access with IAM authorization" and "x-amazon-apigateway-authtype" of API Gateway's guide.
_SIGNED: Json = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4, of the service execute-api.",
    "x-amazon-apigateway-authtype": "awsSigv4",
}


def _parameter(name: str, place: str, description: str, example: str, **schema: Any) -> Json:
    required = {"required": True} if place == "path" else {}
    schema = {"type": "string", **schema}
    return {"name": name, "in": place, **required, "description": description, "schema": schema, "example": example}


_PARAMETERS: Json = {
    "queue": _parameter(
        "queue", "path", "The queue's name in queues.yaml.", example="emails", pattern=f"^{QUEUE_NAME}$"
    ),
    "schedule": _parameter("schedule", "path", "The schedule's name.", example="digest", pattern=f"^{SCHEDULE_NAME}$"),
    "id": _parameter("id", "path", "The job's id, as in the answer that made it.", example=ID, minLength=1),
    "call": _parameter(
        "Idempotency-Key",
        "header",
        "The name of the call: repeats of it, after a lost answer, make and move one job, and return it.",
        example="5f0f3f5e-8d0a-4b57-9d0e-3f5b1c6a7e21",
        pattern=f"^[!-~]([ -~]{{0,{MAX_KEY_CHARACTERS - 2}}}[!-~])?$",
    ),
    "if-match": _parameter(
        "If-Match",
        "header",
        "The `ETag` of an earlier answer, or several with commas between: 412 if the schedule was changed since. `*`"
        " is any schedule; a weak tag (`W/`) matches none.",
        example="*",
    ),
    "if-none-match": _parameter(
        "If-None-Match", "header", "`*`: only create it, 412 if it exists.", example="*", enum=["*"]
    ),
    "traceparent": _parameter(
        "traceparent",
        "header",
        "The W3C trace context that the messages of the jobs carry. An invalid one is ignored.",
        example="00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01",
    ),
    "tracestate": _parameter(
        "tracestate", "header", "The rest of that trace context, up to 512 characters.", example="vendor=7"
    ),
}
_HEADERS: Json = {
    "Retry-After": {
        "description": "Seconds to wait before trying again. API Gateway's own answers have none.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 1,
    },
    "ETag": {
        "description": "The schedule's generation, for `If-Match`.",
        "schema": {"type": "string"},
        "example": '"1-1798707600000"',
    },
}
# What each status means, and what API Gateway says in its own answer of it, if it has one.
_REFUSALS: Mapping[HTTPStatus, tuple[str, str]] = {
    HTTPStatus.BAD_REQUEST: ("A field is wrong: the detail names it, the value got and what is allowed.", ""),
    HTTPStatus.FORBIDDEN: (
        "No signature, or the caller's policies do not allow this queue, which is API Gateway's own; or the alias that"
        " was invoked does not allow the request.",
        "Forbidden",
    ),
    HTTPStatus.NOT_FOUND: (
        "No such queue, no such job (a malformed id, another queue's, one of a partition that never was, one past its"
        " retention), no such schedule, or no such route.",
        "Not Found",
    ),
    HTTPStatus.CONFLICT: (
        "The job has left for its queue, or was cancelled. Or it is a run of a schedule, which cannot be moved. Or a"
        " job has the key, which is its `id`, and the call was to fail then. Or the id that was given is of a job with"
        " another payload, kind, tenant or priority. Or the queue has as many schedules as it may have, or the schedule"
        " was changed too often within its jitter.",
        "",
    ),
    HTTPStatus.PRECONDITION_FAILED: (
        "The schedule has changed since the answer with the `ETag` of `If-Match`. Or it exists, and was only to be"
        " created.",
        "",
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (
        "A payload over 10 MiB, or a schedule's over 256 KiB; or a request over 6 MB, which is API Gateway's own.",
        "Request Entity Too Large",
    ),
    HTTPStatus.UNPROCESSABLE_ENTITY: (
        "The key belongs to a job with another payload, kind, tenant or priority; or the idempotency key to another"
        " call.",
        "",
    ),
    HTTPStatus.TOO_MANY_REQUESTS: (
        "AWS throttled a request; or `api_rate` is reached, which is API Gateway's own.",
        "Too Many Requests",
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: ("The function failed. API Gateway's own.", "Internal Server Error"),
    HTTPStatus.SERVICE_UNAVAILABLE: (
        "AWS failed, or its answer was lost: try again, with the same id or key. The job may be scheduled all the same;"
        " `id` names it then. Or `not_yet`: the job or schedule may still be on its way, says the detail.",
        "Service Unavailable",
    ),
}
# API Gateway refuses what it refuses for whichever operation.
_EVERYWHERE = (
    HTTPStatus.FORBIDDEN,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_WITH_RETRY_AFTER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class GatewayRefusal(TypedDict):
    """What API Gateway says itself."""

    message: str
    """The reason, in its words."""


class _Plain(GenerateJsonSchema):
    """Schemas without titles that repeat a field's name; what is one of several is `oneOf`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def union_schema(self, schema: core_schema.UnionSchema) -> JsonSchemaValue:
        plain = super().union_schema(schema)
        return {("oneOf" if key == "anyOf" else key): value for key, value in plain.items()}


class Schemas:
    """The JSON schemas of the bodies of requests and answers: `named` are those that OpenAPI holds by name."""

    def __init__(self) -> None:
        posted = [operation.body.form for operation in OPERATIONS if operation.body]
        results = [answer.form for operation in OPERATIONS for answer in operation.answers.values()]
        inputs: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
            *((repr(form), "validation", TypeAdapter(form)) for form in posted),
            *(
                (repr(form), "serialization", TypeAdapter(form))
                for form in (*results, problems.Problem, GatewayRefusal)
            ),
        ]
        schemas, shared = TypeAdapter.json_schemas(inputs, ref_template=_TEMPLATE, schema_generator=_Plain)
        self._schemas = {name: schema for (name, _), schema in schemas.items()}
        self.named: Json = shared["$defs"]
        for name, schema in self.named.items():
            _describe(schema["properties"], _MODELS[name])

    def __getitem__(self, form: Any) -> Json:
        """Return the schema of a type, which for one with a name is a reference."""
        return self._schemas[repr(form)]


_MODELS = {
    name: model
    for module in (answers, problems, requests, schedule_models)
    for name, model in vars(module).items()
    if hasattr(model, "__total__") or getattr(model, "model_fields", None)
} | {"GatewayRefusal": GatewayRefusal}


def _describe(properties: Json, model: Any) -> None:
    """Add the descriptions of a model's fields to their schemas."""
    fields = getattr(model, "model_fields", {})
    for name, description in _descriptions(model).items():
        alias = fields[name].alias if name in fields else None
        properties[alias or name]["description"] = description


def _descriptions(model: Any) -> dict[str, str]:
    """Return the strings below the fields of a class and of the models that it is made of."""
    descriptions: dict[str, str] = {}
    for base in getattr(model, "__orig_bases__", model.__bases__):
        if base in _MODELS.values():
            descriptions |= _descriptions(base)
    (definition,) = ast.parse(inspect.getsource(model)).body
    for field, below in pairwise(cast("ast.ClassDef", definition).body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                descriptions[name] = " ".join(text.split())
    return descriptions


def text() -> str:
    """Return the document as its file holds it."""
    return json.dumps(document(), indent=2) + "\n"


def document() -> Json:
    """Return the OpenAPI 3.1 document of the API."""
    schemas = Schemas()
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        _, method, path = operation.route.split()
        paths.setdefault(path, {})[method.lower()] = _operation(operation, schemas)
    statuses = sorted({status for operation in OPERATIONS for status in _refused(operation)})
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": _SERVERS,
        "tags": _TAGS,
        "security": [{"sigv4": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.named,
            "parameters": _PARAMETERS,
            "headers": _HEADERS,
            "responses": {_name(status): _refusal(status, schemas) for status in statuses},
            "securitySchemes": {"sigv4": _SIGNED},
        },
    }


def _operation(operation: Operation, schemas: Schemas) -> Json:
    id, _, path = operation.route.split()
    responses = {str(status): _answer(body, schemas) for status, body in operation.answers.items()}
    refused = {str(status.value): {"$ref": f"#/components/responses/{_name(status)}"} for status in _refused(operation)}
    body = {} if operation.body is None else {"requestBody": _body(operation.body, schemas)}
    return {
        "operationId": id,
        "tags": [_tag(path)],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": _parameters(operation, path),
        **body,
        "responses": responses | refused,
    }


def _parameters(operation: Operation, path: str) -> list[Json]:
    in_path = [name for name in ("queue", "schedule", "id") if f"{{{name}}}" in path]
    shared = [{"$ref": f"#/components/parameters/{name}"} for name in (*in_path, *operation.headers)]
    properties: Json = {}
    if operation.query:
        form = operation.query.model_json_schema()
        properties, required = form["properties"], form.get("required", [])
        _describe(properties, operation.query)
    return shared + [
        {**_query_parameter(name, schema), **({"required": True} if name in required else {})}
        for name, schema in properties.items()
    ]


def _query_parameter(name: str, field: Mapping[str, Any]) -> Json:
    """Return a parameter of the query: a field that may be null is one that may be left out."""
    (schema,) = [option for option in field.get("anyOf", [field]) if option.get("type") != "null"]
    kept = {key: value for key, value in schema.items() if key not in ("title", "description", "examples")}
    if not kept.get("default"):
        kept.pop("default", None)
    example = {"example": field["examples"][0]}
    return {"name": name, "in": "query", "description": field["description"], "schema": kept, **example}


def _body(body: Body, schemas: Schemas) -> Json:
    return {"required": not body.is_optional, "description": body.description, "content": _content(body, schemas)}


def _answer(answer: Body, schemas: Schemas) -> Json:
    parameters = {"queue": "$response.body#/queue", "id": "$response.body#/id"}
    links = {operation: {"operationId": operation, "parameters": parameters} for operation in answer.leads_to}
    content = {"description": answer.description, "content": _content(answer, schemas)}
    tag = {"headers": {"ETag": {"$ref": "#/components/headers/ETag"}}} if answer.form is ScheduleAnswer else {}
    return {**content, **({"links": links} if links else {}), **tag}


def _content(body: Body, schemas: Schemas) -> Json:
    examples = {name: {"value": value} for name, value in body.examples.items()}
    return {"application/json": {"schema": schemas[body.form], "examples": examples}}


def _tag(path: str) -> str:
    """Return what a path is about: a queue's jobs have uploads and cancellations besides."""
    if "schedules" in path:
        return "schedules"
    return "jobs" if path.endswith(("/jobs", "/{id}", "/uploads", "/cancellations")) else "queues"


def _refused(operation: Operation) -> list[HTTPStatus]:
    implied = {
        HTTPStatus.BAD_REQUEST: operation.body or operation.query or "{schedule}" in operation.route,
        HTTPStatus.NOT_FOUND: "{queue}" in operation.route,
        HTTPStatus.PRECONDITION_FAILED: "if-match" in operation.headers,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: operation.body,
    }
    statuses = [status for status, is_implied in implied.items() if is_implied]
    return sorted({*statuses, *map(HTTPStatus, operation.refused), *_EVERYWHERE})


def _name(status: HTTPStatus) -> str:
    return problems.title(status).replace(" ", "")


def _refusal(status: HTTPStatus, schemas: Schemas) -> Json:
    """Return the answer of a status, as the API gives it and as API Gateway does in its place."""
    meaning, message = _REFUSALS[status]
    content: Json = {}
    if codes := problems.codes(status):
        narrowed = {"status": {"const": status.value}, "code": {"enum": codes}}
        examples = {one["code"]: {"value": one} for one in REFUSALS if one["status"] == status}
        schema = {**schemas[problems.Problem], "properties": narrowed}
        content["application/problem+json"] = {"schema": schema, "examples": examples}
    if message:
        gateway = {"gateway": {"value": {"message": message}}}
        content["application/json"] = {"schema": schemas[GatewayRefusal], "examples": gateway}
    retry_after = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}
    headers = {"headers": retry_after} if status in _WITH_RETRY_AFTER else {}
    return {"description": meaning, **headers, "content": content}
