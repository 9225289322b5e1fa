"""docs/openapi.json: it is what the code says, of every route, and what the code tells is what it says."""

from typing import get_type_hints

import jsonschema
import pytest
from pydantic import ConfigDict, TypeAdapter, with_config

from dueline.config.registry import settings_of
from dueline.model.job import State
from functions.http import job_answers, listed_jobs, problems, queue_answers, schedule_answers
from functions.http.openapi import examples
from functions.http.openapi.document import PATH, document, text
from functions.http.openapi.operation import Body
from tests.builders import a_queue, an_id
from tests.called import imported

DOCUMENT = document()
FORMS = {
    name
    for module in (job_answers, listed_jobs, queue_answers, schedule_answers)
    for name, each in vars(module).items()
    if hasattr(each, "__total__")
}
METHODS = {"get", "post", "patch", "delete", "put"}
OPERATIONS = {(method, path): told for path, methods in DOCUMENT["paths"].items() for method, told in methods.items()}


def resolved(part):
    """Return a part of the document, or what it refers to."""
    if "$ref" not in part:
        return part
    found = DOCUMENT
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found


def contents():
    """Yield every body that the document tells of, with where it is told."""
    for (method, path), told in OPERATIONS.items():
        bodies = {"request": told["requestBody"]} if "requestBody" in told else {}
        for name, each in {**bodies, **told["responses"]}.items():
            for media_type, content in resolved(each)["content"].items():
                yield f"{method} {path} {name} {media_type}", content


def validator(schema):
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


@pytest.fixture
def api(monkeypatch):
    with imported(monkeypatch) as api:
        yield api


def test_the_document_is_what_the_code_says():
    assert PATH.read_text() == text(), "run make schema"


def test_every_route_is_told_of_and_no_other(api):
    api.with_schedules()
    paths = api.app.get_openapi_schema(title="Dueline", version="1").paths
    routes = {
        (method, path): getattr(item, method).operationId
        for path, item in paths.items()
        for method in METHODS
        if getattr(item, method)
    }
    assert routes.keys() == OPERATIONS.keys()
    assert all(name.startswith(f"{OPERATIONS[route]['operationId']}_") for route, name in routes.items())


def test_an_operation_answers_with_the_types_that_its_function_does(api):
    for told in OPERATIONS.values():
        own = vars(api).get(told["operationId"]) or getattr(api.with_schedules(), told["operationId"])
        returned = str(get_type_hints(own)["return"])
        assert {name for name in FORMS if f".{name}" in returned} == _forms(told), told["operationId"]


def _forms(told):
    successes = [each for status, each in told["responses"].items() if status.startswith("2")]
    schemas = [each["content"]["application/json"]["schema"] for each in successes]
    return {part["$ref"].rpartition("/")[2] for schema in schemas for part in schema.get("oneOf", [schema])}


def test_the_document_is_openapi_3_1_and_signed_throughout():
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["security"] == [{"sigv4": []}]
    assert DOCUMENT["components"]["securitySchemes"]["sigv4"]["x-amazon-apigateway-authtype"] == "awsSigv4"


def test_each_body_has_an_example_and_each_example_is_one():
    wrong = {
        where: [example for example in content["examples"].values() if not is_one(example["value"], content["schema"])]
        for where, content in contents()
    }
    assert {where: examples for where, examples in wrong.items() if examples} == {}
    assert [where for where, content in contents() if not content["examples"]] == []


def is_one(value, schema):
    return validator(schema).is_valid(value)


def test_each_type_and_each_of_its_fields_says_what_it_is():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["description"], name
        fields = schema["properties"].items()
        assert [field for field, told in fields if not resolved(told).get("description")] == [], name


def test_each_operation_and_each_of_its_parameters_says_what_it_is():
    for route, told in OPERATIONS.items():
        assert told["summary"], route
        assert told["description"], route
        parameters = [resolved(each) for each in told["parameters"]]
        assert [each["name"] for each in parameters if not each["description"] or "example" not in each] == [], route
        assert {each["name"] for each in parameters if each["in"] == "path"} == set(_between_braces(route[1])), route


def _between_braces(path):
    return [part.strip("{}") for part in path.split("/") if part.startswith("{")]


def test_each_operation_says_what_the_gateway_refuses():
    for route, told in OPERATIONS.items():
        assert {"403", "429", "500", "503"} <= told["responses"].keys(), route


def test_the_codes_of_a_status_are_those_of_its_errors():
    (of_404, of_503) = (DOCUMENT["components"]["responses"][name] for name in ("NotFound", "ServiceUnavailable"))
    codes = [each["content"]["application/problem+json"]["schema"]["properties"]["code"] for each in (of_404, of_503)]
    assert codes == [
        {"enum": ["job_not_found", "queue_not_found", "route_not_found", "schedule_not_found"]},
        {"enum": ["not_yet", "unavailable"]},
    ]
    every = DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
    assert every == problems.codes()
    assert len(every) == 17


@pytest.mark.parametrize(
    ("body", "may_be"),
    [
        ({"payload": None}, True),
        ({"payload": 1, "at": "2030-01-01T00:00:00Z", "delay": None}, True),
        ({"payload": 1, "at": "2030-01-01T00:00:00Z", "delay": 1}, False),
        ({"payload": 1, "delay": -1}, False),
        ({"payload": 1, "id": examples.ID, "tenant": "acme", "at": None}, True),
        ({"payload": 1, "id": examples.ID, "delay": 1}, False),
        ({"payload": 1, "id": examples.ID, "key": "k"}, False),
        ({"payload": 1, "id": "7"}, False),
        ({"payload": 1, "key": ""}, False),
        ({"payload": 1, "tenant": "a b"}, False),
        ({"payload": 1, "when": "now"}, False),
        ({}, False),
        ({"jobs": [{"payload": 1}]}, True),
        ({"jobs": []}, False),
        ({"jobs": [{"payload": 1}], "payload": 1}, False),
    ],
)
def test_what_may_be_posted_is_a_job_or_many_and_nothing_more(body, may_be):
    posted = OPERATIONS["post", "/queues/{queue}/jobs"]["requestBody"]["content"]["application/json"]["schema"]
    assert len(posted["oneOf"]) == 2
    assert validator(posted).is_valid(body) is may_be


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (job_answers.JobAnswer, job_answers.job_answer(an_id(), State.CANCELLED, moved_to=an_id())),
        (job_answers.JobAnswer, examples.failed()),
        (listed_jobs.Page, examples.page()),
        (queue_answers.OverviewAnswer, examples.overview()),
        (queue_answers.QueueAnswer, queue_answers.queue_answer(a_queue(), taking=1, direct_horizon=890)),
        (queue_answers.ControlAnswer, examples.control(rate="50/s")),
    ],
)
def test_what_is_told_has_the_fields_of_its_type_and_no_other(form, told):
    closed = TypeAdapter(with_config(ConfigDict(extra="forbid", strict=True))(form))
    assert closed.validate_python(told) == told


def test_a_queue_is_told_with_all_its_settings():
    assert queue_answers.queue_answer(a_queue(), taking=None, direct_horizon=890) == {
        "queue": "emails",
        **settings_of(a_queue()),
        "taking": None,
        "direct_horizon": 890,
    }


def test_a_body_without_an_example_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        Body(form=job_answers.JobAnswer, description="A job.", examples={})


def test_no_function_imports_what_writes_the_document():
    functions = PATH.parents[1] / "functions"
    others = [path for path in functions.rglob("*.py") if not path.is_relative_to(functions / "http" / "openapi")]
    assert [path.name for path in others if "functions.http.openapi" in path.read_text()] == []
    assert {"api.py", "bodies.py"} <= {path.name for path in others}
