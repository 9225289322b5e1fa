"""What a schema cannot say: failures that are none, because the API does just what it promises beyond its schema."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import AcceptedNegativeData, Failure, ServerError
from schemathesis.openapi.checks import RejectedPositiveData

_DOCUMENT = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text())
_KEY = _DOCUMENT["components"]["parameters"]["call"]
# Limits that move with the clock, two fields that must fit each other, and places that only an answer can show.
_BEYOND_SCHEMAS = re.compile(
    r"(at|from|to) is \S+: it must be from "
    r"|to is \S+: it must not be before from"
    r"|next is .*: must be the `next` of an earlier answer"
    r"|key is .*: it (belongs to|was used for) "
    r"|idempotency_key is .*: it was used for "
    r"|(key is .*: job .* has it, and|if_exists is)"
    r"|(id and key|key and [a-z, ]+) are both given"
    r"|(jitter|end|count|start) is .*: (it must (be whole seconds|be after|come with start)|the rule must have a run)"
    r"|(every|jitter) is .*: ('.*' is no span of time|it must be from)"
    r"|schedule \S+ is there already"
    r"|track of queue \S+ is false"
    r"|id is .*: (it is of queue|it belongs to|partition \d+ takes no jobs|its job (is|was) due)",
    re.DOTALL,
)


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    """Send no idempotency key where it is not what is tried: with one many are refused, and one job is a repeat."""
    if case.headers and case.headers.get(_KEY["name"]) == _KEY["example"]:
        del case.headers[_KEY["name"]]


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Keep a failure unless it is none."""
    if isinstance(failure, AcceptedNegativeData):
        return not (_is_each_for_itself(case.body, response) or _is_taken_all_the_same(failure))
    if isinstance(failure, RejectedPositiveData):
        return _BEYOND_SCHEMAS.match(response.json()["detail"]) is None
    if isinstance(failure, ServerError):
        return not _is_on_its_way(case, response)
    return True


def _is_each_for_itself(body: Any, response: Response) -> bool:
    """Return whether many were sent, and each that is wrong has its error, in its place."""
    many = isinstance(body, dict) and len(body) == 1 and (body.get("jobs") or body.get("ids") or body.get("keys"))
    if not many:
        return False
    valid = _job if "jobs" in body else _id
    results = response.json()["jobs"]
    return len(results) == len(many) and all(
        "error" in result for each, result in zip(many, results, strict=True) if not valid.is_valid(each)
    )


def _is_taken_all_the_same(failure: Failure) -> bool:
    """Return whether the narrowed document alone forbids it: another schedule's name, or an entity tag.

    What is already as requested is not refused, whatever the tag.
    """
    return any(f"parameter `{name}` in" in failure.message for name in ("schedule", "If-Match"))


def _is_on_its_way(case: Case, response: Response) -> bool:
    """Return whether it is a reschedule that came before its job is in the table."""
    return case.method == "PATCH" and response.json().get("code") == "not_yet"


def _validator(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**schema, "components": _DOCUMENT["components"]})


_job = _validator({"$ref": "#/components/schemas/JobBody"})
_id = _validator({"type": "string"})
