"""docs/openapi.json says what the code answers, and answers are what it says."""

import json

import jsonschema
import pytest

from dueline.config.routes import ROUTES
from dueline.core.listing import JobPage
from dueline.core.overview import Overview
from dueline.core.ports import Depth
from dueline.functions.http.answers import overview_answer, page_of_jobs
from dueline.functions.http.openapi import PATH, document, text
from tests.builders import a_job, a_queue, an_id

DOCUMENT = document()
METHODS = {"get", "post", "patch", "delete", "put"}
OPERATIONS = {
    (method, path): operation for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()
}


def resolved(part):
    """Return a part of the document, or what it refers to."""
    if "$ref" not in part:
        return part
    result = DOCUMENT
    for name in part["$ref"].removeprefix("#/").split("/"):
        result = result[name]
    return result


def validator(schema):
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def test_document_is_up_to_date():
    assert PATH.read_text() == text(), "run make schema"


def test_document_has_every_route(api):
    api.with_schedules()
    paths = api.app.get_openapi_schema(title="Dueline", version="1").paths
    routes = {
        (method, path): getattr(item, method).operationId
        for path, item in paths.items()
        for method in METHODS
        if getattr(item, method)
    }
    assert routes.keys() == OPERATIONS.keys()
    assert {(method.lower(), path) for path, route in ROUTES.items() for method in route.methods} == OPERATIONS.keys()
    assert all(name.startswith(f"{OPERATIONS[route]['operationId']}_") for route, name in routes.items())


def test_examples_of_requests_are_valid():
    bodies = [
        each["requestBody"]["content"]["application/json"] for each in OPERATIONS.values() if "requestBody" in each
    ]
    for body in bodies:
        assert body["examples"]
        for example in body["examples"].values():
            validator(body["schema"]).validate(example["value"])


def test_parameters_types_and_fields_are_described():
    for operation in OPERATIONS.values():
        parameters = [resolved(each) for each in operation["parameters"]]
        assert [each["name"] for each in parameters if not each["description"] or "example" not in each] == []
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["description"], name
        fields = schema["properties"].items()
        assert [field for field, operation in fields if not resolved(operation).get("description")] == [], name


@pytest.mark.parametrize(
    ("body", "may_be"),
    [
        ({"payload": None}, True),
        ({"payload": 1, "at": "2030-01-01T00:00:00Z", "delay": None}, True),
        ({"payload": 1, "at": "2030-01-01T00:00:00Z", "delay": 1}, False),
        ({"payload": 1, "delay": -1}, False),
        ({"payload": 1, "id": str(an_id()), "tenant": "acme", "at": None}, True),
        ({"payload": 1, "id": str(an_id()), "delay": 1}, False),
        ({"payload": 1, "key": ""}, False),
        ({}, False),
        ({"jobs": [{"payload": 1}]}, True),
        ({"jobs": []}, False),
        ({"jobs": [{"payload": 1}], "payload": 1}, False),
    ],
)
def test_posted_body_is_a_job_or_many(body, may_be):
    posted = OPERATIONS["post", "/queues/{queue}/jobs"]["requestBody"]["content"]["application/json"]["schema"]
    assert len(posted["oneOf"]) == 2
    assert validator(posted).is_valid(body) is may_be


# Jobs and queues, as JSON


def page_of(payload):
    answer = page_of_jobs(JobPage(jobs=(a_job(payload=payload),), after=None))
    # As strictly as callers may read it.
    (job,) = json.loads(json.dumps(answer, allow_nan=False))["jobs"]
    return job


@pytest.mark.parametrize("payload", ["null", '{"a": [1, "ü", "\\u0001"]}', "[" * 200 + "]" * 200])
def test_json_payload_is_shown_as_json(payload):
    job = page_of(payload)
    assert job["payload"] == json.loads(payload)
    assert (job["state"], "payload_text" in job) == ("scheduled", False)


@pytest.mark.parametrize("text", ["{", "NaN", "1e999", "9" * 5000, "[" * 100_000, "[" * 201 + "]" * 201])
def test_non_json_payload_is_shown_as_text(text):
    job = page_of(text)
    assert job["payload_text"] == text
    assert "payload" not in job


def test_overview_has_each_level_and_their_sum():
    levels = (Depth(waiting=1, in_flight=2, delayed=3), Depth(waiting=10, in_flight=20, delayed=30))
    overview = Overview(scheduled=0, more_scheduled=False, next_due=None, fence_age=None, levels=levels, dead=0)
    answer = overview_answer(a_queue(priorities=2), overview, taking=1, direct_horizon=890)
    assert (answer["waiting"], answer["in_flight"], answer["delayed"]) == (11, 22, 33)
    assert answer["levels"] == [
        {"priority": 1, "waiting": 1, "in_flight": 2, "delayed": 3},
        {"priority": 2, "waiting": 10, "in_flight": 20, "delayed": 30},
    ]
