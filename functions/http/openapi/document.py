"""docs/openapi.json, written from the types of requests and answers."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import dueline
from functions.http import problems
from functions.http.openapi.job_operations import JOB_OPERATIONS
from functions.http.openapi.operation import Body, Operation
from functions.http.openapi.parameters import ENTITY_TAG, PARAMETERS
from functions.http.openapi.queue_operations import QUEUE_OPERATIONS
from functions.http.openapi.refusals import EVERYWHERE, GatewayRefusal, refusal, retry_after
from functions.http.openapi.schedule_operations import SCHEDULE_OPERATIONS
from functions.http.openapi.schemas import Json, Schemas

OPERATIONS = (*JOB_OPERATIONS, *SCHEDULE_OPERATIONS, *QUEUE_OPERATIONS)
PATH = Path(__file__).parents[3] / "docs" / "openapi.json"
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
    {"name": "schedules", "description": "Have a queue's jobs made again and again, by a rule."},
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


def text() -> str:
    """Return the document as its file holds it."""
    return json.dumps(document(), indent=2) + "\n"


def document() -> Json:
    """Return the OpenAPI 3.1 document of the API."""
    schemas = _schemas()
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": _SERVERS,
        "tags": _TAGS,
        "security": [{"sigv4": []}],
        "paths": paths,
        "components": _components(schemas),
    }


def _schemas() -> Schemas:
    answered = [answer.form for operation in OPERATIONS for answer in operation.answers.values()]
    return Schemas(
        asked=[operation.body.form for operation in OPERATIONS if operation.body],
        answered=[*answered, problems.Problem, GatewayRefusal],
    )


def _components(schemas: Schemas) -> Json:
    statuses = sorted({status for operation in OPERATIONS for status in _refused(operation)})
    return {
        "schemas": schemas.named,
        "parameters": PARAMETERS,
        "headers": {"Retry-After": retry_after(), "ETag": ENTITY_TAG},
        "responses": {_name(status): refusal(status, ref=schemas.__getitem__) for status in statuses},
        "securitySchemes": {"sigv4": _SIGNED},
    }


def _operation(operation: Operation, schemas: Schemas) -> Json:
    headers = {"headers": {"ETag": {"$ref": "#/components/headers/ETag"}}} if operation.tagged else {}
    answers = {str(status.value): _answer(body, schemas) | headers for status, body in operation.answers.items()}
    refused = {str(status.value): {"$ref": f"#/components/responses/{_name(status)}"} for status in _refused(operation)}
    body = {} if operation.body is None else {"requestBody": _body(operation.body, schemas)}
    return {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": _parameters(operation),
        **body,
        "responses": answers | refused,
    }


def _parameters(operation: Operation) -> list[Json]:
    named = [name for name in ("queue", "schedule", "id") if f"{{{name}}}" in operation.path]
    named += ["key"] * operation.keyed + ["if-match"] * operation.conditional + ["if-none-match"] * operation.creating
    named += ["traceparent", "tracestate"] * operation.traced
    properties = operation.query.model_json_schema()["properties"] if operation.query else {}
    shared = [{"$ref": f"#/components/parameters/{name}"} for name in named]
    return shared + [_query_parameter(name, schema) for name, schema in properties.items()]


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
    links = {operation: _link(operation) for operation in answer.leads_to}
    return {
        "description": answer.description,
        "content": _content(answer, schemas),
        **({"links": links} if links else {}),
    }


def _content(body: Body, schemas: Schemas) -> Json:
    examples = {name: {"value": value} for name, value in body.examples.items()}
    return {"application/json": {"schema": schemas[body.form], "examples": examples}}


def _link(operation: str) -> Json:
    parameters = {"queue": "$response.body#/queue", "id": "$response.body#/id"}
    return {"operationId": operation, "parameters": parameters}


def _refused(operation: Operation) -> list[HTTPStatus]:
    return sorted({*operation.refused, *EVERYWHERE})


def _name(status: HTTPStatus) -> str:
    return problems.title(status).replace(" ", "")
