"""Run schemathesis against an API, with the queue and the ids that it has."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local.template import ROOT

_HERE = Path(__file__).parent
_UUID = "-".join(f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12))
_SOON = r"^20(2[7-9]|3[0-5])-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T[01][0-9]:[0-5][0-9]:[0-5][0-9](Z|\+0[0-9]:30)$"

_PAST = r"^2026-01-01T0[0-9]:00:00Z$"
# A rule, a zone, a start that there may be.
_RULES: dict[str, Any] = {
    "cron": {"enum": ["0 9 * * MON-FRI", "@daily"]},
    "zone": {"enum": ["UTC", "Europe/Berlin"]},
    "start": {"enum": ["2027-01-04T00:00:00Z"]},
    "end": {"enum": ["2028-01-04T00:00:00+01:00"]},
}
SCHEDULE = "fuzzed"
_MANY = 20


def fuzz(
    api: str, *, ids: Sequence[str], folder: Path, examples: str | None = None
) -> "subprocess.CompletedProcess[str]":
    """Call the API for all that its document allows, and for what it forbids, in the place of a caller.

    `ids` are jobs that are scheduled in the queue emails; `examples` is how many requests to make up an operation.
    """
    document = folder / "openapi.json"
    document.write_text(json.dumps(narrowed(json.loads((ROOT / "docs" / "openapi.json").read_text()), ids=ids)))
    config = ["--no-color", "--config-file", str(_HERE / "schemathesis.toml")]
    run = ["run", str(document), "--url", api, *(["--max-examples", examples] if examples else [])]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.e2e.fuzz.hooks"}
    command = [sys.executable, "-m", "schemathesis.cli", *config, *run]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def narrowed(document: dict[str, Any], *, ids: Sequence[str]) -> dict[str, Any]:
    """Return the document with a queue and ids that there may be, times to come, few jobs a call, and all closed.

    Without that nearly all would be refused: a queue, an id and a date in the next ten years are seldom guessed. Calls
    of 500 take seconds, and other tests make them.
    """
    schemas, parameters = (document["components"][each] for each in ("schemas", "parameters"))
    parameters["queue"]["schema"] = {"enum": ["emails"]}
    parameters["schedule"]["schema"] = {"enum": [SCHEDULE]}
    # One who sends one that is not the schedule's reads so, whatever else is wrong.
    parameters["if-match"]["schema"] = {"enum": ["*"]}
    another = {"type": "string", "pattern": rf"^emails\.0\.[dt]\.1[89][0-9]{{11}}\.{_UUID}$"}
    parameters["id"] |= {"schema": {"anyOf": [{"enum": list(ids)}, another]}, "example": ids[0]}
    for body in ("JobBody", "TimeBody"):
        schemas[body]["properties"]["at"]["anyOf"].insert(0, {"type": "string", "pattern": _SOON})
    for body in ("ScheduleBody", "PreviewBody"):
        schemas[body]["properties"] |= _RULES
    schemas["BackfillBody"]["properties"] |= {name: {"type": "string", "pattern": _PAST} for name in ("from", "to")}
    # The queue has one level, and no upload that is made up was ever sent.
    for body in ("JobBody", "ScheduleBody"):
        schemas[body]["properties"]["priority"]["maximum"] = 1
    del schemas["JobBody"]["properties"]["upload"]
    for body, many in (("JobsBody", "jobs"), ("CancellationsBody", "ids"), ("CancellationsBody", "keys")):
        schemas[body]["properties"][many]["maxItems"] = _MANY
    for schema in schemas.values():
        # Published open, so that a field may be added; closed here, so that none is returned that is not written.
        schema.setdefault("additionalProperties", False)
    return document
