"""docs/openapi.json, written from the types of requests and answers, and the table of operations.

`python -m dueline.functions.http.openapi` writes it. No function imports this; a test holds it to the routes.
"""

import ast
import inspect
import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

import dueline
from dueline.core.job import MAX_KEY_CHARACTERS, QUEUE_NAME, SCHEDULE_NAME
from dueline.functions.http import answers, problems, requests
from dueline.functions.http import schedule_models as schedules
from dueline.functions.http.api_operations import ID, OPERATIONS, Operation

Json = dict[str, Any]
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
    {"url": "http://127.0.0.1:4567", "description": "a local run (`make up`), which signs for you"},
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
        "The `ETag` of an earlier answer: 412 if the schedule was changed since. `*` is any schedule.",
        example="*",
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
_RETRY_AFTER: Json = {
    "description": "With 429 and 503, seconds to wait before trying again. API Gateway's own answers have none.",
    "schema": {"type": "integer", "minimum": 0},
}
_ETAG: Json = {"description": "The schedule's generation, for `If-Match`.", "schema": {"type": "string"}}
_OF_GATEWAY: Json = {
    "type": "object",
    "description": "What API Gateway says itself.",
    "properties": {"message": {"type": "string"}},
    "required": ["message"],
}


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
        posted = [operation.body for operation in OPERATIONS if operation.body]
        answered = [form for operation in OPERATIONS for form in operation.answers.values()]
        modes: list[tuple[JsonSchemaMode, list[Any]]] = [
            ("validation", posted),
            ("serialization", [*answered, problems.Problem]),
        ]
        inputs = [(repr(form), mode, TypeAdapter(form)) for mode, forms in modes for form in forms]
        reference = "#/components/schemas/{model}"
        schemas, shared = TypeAdapter.json_schemas(inputs, ref_template=reference, schema_generator=_Plain)
        self._schemas = {name: schema for (name, _), schema in schemas.items()}
        self.named: Json = shared["$defs"]
        for name, schema in self.named.items():
            _describe(_FORMS[name], schema["properties"])

    def content(self, form: Any, media_type: str = "application/json", **more: Any) -> Json:
        """Return a body: its schema, which for a type with a name is a reference."""
        return {media_type: {"schema": self._schemas[repr(form)], **more}}


_MODULES = (problems, answers, requests, schedules)
_FORMS = {name: form for module in _MODULES for name, form in vars(module).items()}


def _field_descriptions() -> dict[str, dict[str, str]]:
    """Return the strings below the fields of each class, by its name, with those of the classes that it is made of."""
    described: dict[str, dict[str, str]] = {}
    for module in _MODULES:
        for each in ast.parse(inspect.getsource(module)).body:
            if isinstance(each, ast.ClassDef):
                own = described[each.name] = {}
                for base in each.bases:
                    own |= described.get(ast.unparse(base), {})
                for line, below in pairwise(each.body):
                    match line, below:
                        case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                            own[name] = " ".join(text.split())
    return described


_DESCRIPTIONS = _field_descriptions()


def _describe(form: Any, properties: Json) -> None:
    """Add the descriptions of the fields of a class to their schemas."""
    fields = getattr(form, "model_fields", {})
    for name, description in _DESCRIPTIONS[form.__name__].items():
        alias = fields[name].alias if name in fields else None
        properties[alias or name]["description"] = description


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
    problem = schemas.content(problems.Problem, "application/problem+json")
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
            "responses": {
                "Problem": {
                    "description": "The request failed, for the reason that `code` names; or API Gateway refused it.",
                    "headers": {"Retry-After": _RETRY_AFTER},
                    "content": {**problem, "application/json": {"schema": _OF_GATEWAY}},
                }
            },
            "securitySchemes": {"sigv4": _SIGNED},
        },
    }


def _operation(operation: Operation, schemas: Schemas) -> Json:
    id, _, path = operation.route.split()
    responses = {str(status): _answer(form, schemas) for status, form in operation.answers.items()}
    errors = {str(status): {"$ref": "#/components/responses/Problem"} for status in operation.statuses_of_errors}
    body = {"requestBody": _body(operation, schemas)} if operation.body else {}
    return {
        "operationId": id,
        "tags": [_tag(path)],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": _parameters(operation, path),
        **body,
        "responses": responses | errors,
    }


def _parameters(operation: Operation, path: str) -> list[Json]:
    in_path = [name for name in ("queue", "schedule", "id") if f"{{{name}}}" in path]
    shared = [{"$ref": f"#/components/parameters/{name}"} for name in (*in_path, *operation.headers)]
    if operation.query is None:
        return shared
    form = operation.query.model_json_schema()
    _describe(operation.query, form["properties"])
    required = form.get("required", [])
    return shared + [
        {**_query_parameter(name, schema), **({"required": True} if name in required else {})}
        for name, schema in form["properties"].items()
    ]


def _query_parameter(name: str, field: Mapping[str, Any]) -> Json:
    """Return a parameter of the query: a field that may be null is one that may be left out."""
    (schema,) = [option for option in field.get("anyOf", [field]) if option.get("type") != "null"]
    kept = {key: value for key, value in schema.items() if key not in ("title", "description", "examples")}
    if not kept.get("default"):
        kept.pop("default", None)
    example = {"example": field["examples"][0]}
    return {"name": name, "in": "query", "description": field["description"], "schema": kept, **example}


def _body(operation: Operation, schemas: Schemas) -> Json:
    examples = {name: {"value": value} for name, value in operation.examples.items()}
    content = schemas.content(operation.body, examples=examples)
    is_required = operation.body is not schedules.RunBody
    return {"required": is_required, "description": _summary(operation.body), "content": content}


def _answer(form: Any, schemas: Schemas) -> Json:
    answer: Json = {"description": _summary(form), "content": schemas.content(form)}
    if form is schedules.ScheduleAnswer:
        answer["headers"] = {"ETag": _ETAG}
    if form is answers.ScheduledAnswer:
        job = {"queue": "$response.body#/queue", "id": "$response.body#/id"}
        names = ("look_up", "reschedule", "cancel")
        answer["links"] = {name: {"operationId": name, "parameters": job} for name in names}
    return answer


def _summary(form: Any) -> str:
    """Return the first lines of what a type says of itself, or of those that it may be."""
    return " Or: ".join(" ".join(str(each.__doc__).partition("\n\n")[0].split()) for each in get_args(form) or (form,))


def _tag(path: str) -> str:
    """Return what a path is about: a queue's jobs have uploads and cancellations besides."""
    if "schedules" in path:
        return "schedules"
    return "jobs" if path.endswith(("/jobs", "/{id}", "/uploads", "/cancellations")) else "queues"


if __name__ == "__main__":
    PATH.write_text(text())
