"""Functions as they are bundled, each started in a fresh interpreter: what it imports, and which clients it makes."""

import inspect
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from dueline.cdk.bundle import bundle
from dueline.config import registry
from dueline.config.deployment import load
from local.emulator import REGION
from local.template import ROOT

FUNCTIONS = ("ingest", "tick", "api", "planner")
# Nobody waits for the guard of TTL.
BUNDLED = (*FUNCTIONS, "watch")
# This Python's, of the same versions: those that are deployed are for another processor.
INSTALLED = Path(boto3.__file__).parents[1]
SERVICES = ("dynamodb", "logs", "s3", "scheduler", "sns", "sqs", "ssm")
GOLDEN = ROOT / "tests" / "template" / "golden" / "dueline-core.json"
# What Lambda sets of itself: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_OF_LAMBDA = {
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nobody",
    "AWS_SESSION_TOKEN": "nobody",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What a start loaded: the `clients` that were made, the services whose `models` were read, and all modules."""

    clients: tuple[str, ...]
    models: tuple[str, ...]
    loaded: tuple[str, ...]


def stage(folder: Path) -> Path:
    """Bundle each function into a folder of its name, as its asset is; return the folder."""
    declared = registry.to_json(load(ROOT / "queues.yaml").queue_settings())
    for name in FUNCTIONS:
        bundle(name, folder / name, registry=declared, services=SERVICES, libraries=INSTALLED)
    return folder


def environment(name: str) -> dict[str, str]:
    """Return the environment of a function as it is deployed, that of Lambda included."""
    resources = json.loads(GOLDEN.read_text())["Resources"].values()
    [function] = [
        each["Properties"] for each in resources if each["Properties"].get("FunctionName") == f"dueline-{name}"
    ]
    return {**_OF_LAMBDA, **function["Environment"]["Variables"], "AWS_LAMBDA_FUNCTION_NAME": f"dueline-{name}"}


def start(target: str, *, code: Path, environment: Mapping[str, str] = {}) -> Start:
    """Import `module:attribute` out of a folder of code, in a process that has that and this environment, and no other.

    Raises RuntimeError with what the process said when it fails.
    """
    # Lambda's file system is read-only: no bytecode is kept there.
    variables = {**environment, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(code)}
    script = f"{inspect.getsource(_probe)}\n_probe({target!r})"
    command = [sys.executable, "-S", "-P", "-c", script]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"starting {target!r}: {done.stderr[-1000:]}")
    return Start(**{name: tuple(each) for name, each in json.loads(done.stdout).items()})


def _probe(target: str) -> None:
    """Import `module:attribute` in a fresh interpreter, and print as JSON what that loaded.

    The source of this function alone runs there. Of a Lambda function, the clients that are made are noted too.
    """
    import sys

    (module, _, name), before = target.partition(":"), set(sys.modules)
    models: list[str] = []
    clients: list[str] = []

    def note_model(event: str, arguments: "tuple[Any, ...]") -> None:
        if event == "open" and "service-2.json" in str(arguments[0]):
            models.append(str(arguments[0]).split("/")[-3])

    def note_clients() -> None:
        module = __import__("dueline.aws.clients", fromlist=["clients"])
        make = module.client

        def made(service: str, *arguments: "Any", **named: "Any") -> "Any":
            clients.append(service)
            return make(service, *arguments, **named)

        setattr(module, "client", made)  # noqa: B010

    sys.addaudithook(note_model)
    if module.startswith("dueline.functions."):
        note_clients()
    getattr(__import__(module, fromlist=[name]), name)
    loaded = sorted(set(sys.modules) - before)
    import json

    sys.stdout.write(json.dumps({"clients": clients, "models": models, "loaded": loaded}))
