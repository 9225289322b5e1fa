"""What a schema cannot say."""

import json
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import Failure, ServerError

_DOCUMENT = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text())
_KEY = _DOCUMENT["components"]["parameters"]["call"]


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    """Send no idempotency key where it is not what is tried: with one many are refused, and one job is a repeat."""
    if case.headers and case.headers.get(_KEY["name"]) == _KEY["example"]:
        del case.headers[_KEY["name"]]


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Keep a failure unless it is a reschedule that came before its job is in the table."""
    is_early = case.method == "PATCH" and response.json().get("code") == "not_yet"
    return not (isinstance(failure, ServerError) and is_early)
