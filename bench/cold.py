"""What a function does before its first event: imports and clients, in a fresh interpreter each time."""

import compileall
import inspect
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import boto3

from bench.harness import Figures, Target
from dueline.cdk.bundle import bundle
from dueline.config import registry
from dueline.config.deployment import load
from dueline.config.environment import ApiSettings, PeriodSettings, Settings, TickSettings, WatchSettings
from local.emulator import ACCOUNT, REGION
from local.template import ROOT

FUNCTIONS = ("ingest", "tick", "api", "planner")
USERS = ("Client", "Worker")
# Nobody waits for the guard of TTL.
BUNDLED = (*FUNCTIONS, "watch")
# This Python's, of the same versions: those that are deployed are for another processor.
INSTALLED = Path(boto3.__file__).parents[1]
SERVICES = ("dynamodb", "logs", "s3", "scheduler", "sns", "sqs", "ssm")
_OURS_MILLISECONDS = 100
_WITH_BYTECODE = " with bytecode"
# What Lambda sets of itself: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_OF_LAMBDA = {
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nobody",
    "AWS_SESSION_TOKEN": "nobody",
}
# As `-X importtime` prints it: https://docs.python.org/3/using/cmdline.html#cmdoption-X
_LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """One start: `wall` and `cpu` in milliseconds.

    `clients` are those of boto3 that were made, with their processor time; `models` the services whose descriptions
    were read; `modules` how long each took by itself, without the clients that were made meanwhile.
    """

    wall: float
    cpu: float
    clients: dict[str, float]
    models: tuple[str, ...]
    loaded: tuple[str, ...]
    modules: dict[str, float]


def measure(scratch: Path, *, quick: bool) -> Figures:
    """Start each function as it is deployed, the same with bytecode, and what users import; round after round."""
    code, compiled = stage(scratch / "deployed"), stage(scratch / "compiled", bytecode=True)
    starts: dict[str, list[Start]] = defaultdict(list)
    for name, each in _rounds(3 if quick else 6, code=code, compiled=compiled):
        starts[name].append(each)
    medians = {name: _medians(all) for name, all in starts.items()}
    functions = {name: medians[name] | {"compiled": medians[name + _WITH_BYTECODE]["cpu"]} for name in FUNCTIONS}
    return {"rounds": len(starts[USERS[0]]), "functions": functions, "users": {name: medians[name] for name in USERS}}


def targets(figures: Figures) -> list[Target]:
    return [
        Target(f"ours of the cold start of {name}", each["ours_ms"], _OURS_MILLISECONDS, unit=" ms")
        for name, each in figures["functions"].items()
    ]


def stage(folder: Path, *, bytecode: bool = False, libraries: Path = INSTALLED) -> Path:
    """Bundle each function into a folder of its name, as its asset is, with these libraries; return the folder."""
    declared = registry.to_json(load(ROOT / "queues.yaml").queue_settings())
    for name in FUNCTIONS:
        bundle(name, folder / name, registry=declared, services=SERVICES, libraries=libraries)
    if bytecode:
        compileall.compile_dir(folder, quiet=1)
    return folder


def environment(name: str) -> dict[str, str]:
    """Return the environment of a function, that of Lambda included."""
    of = load(ROOT / "queues.yaml")
    common: dict[str, Any] = {"deployment": of.name, "queue_urls": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"}
    payloads = of.names.payloads(account=ACCOUNT, region=REGION)
    make: dict[str, Callable[..., Settings]] = {
        "ingest": Settings,
        "tick": partial(TickSettings, tick_period=of.tick_period, lookahead=of.lookahead, lease=of.lease),
        "api": partial(ApiSettings, payloads=payloads, direct_horizon=of.direct_horizon, lookahead=of.lookahead),
        "planner": partial(PeriodSettings, tick_period=of.tick_period),
        "watch": partial(WatchSettings, tick_period=of.tick_period, topics="arn:", runbook_url=of.runbook_url),
    }
    powertools = {"POWERTOOLS_SERVICE_NAME": name}
    settings = make[name](**common).to_env()
    return {**_OF_LAMBDA, **settings, **powertools, "AWS_LAMBDA_FUNCTION_NAME": f"dueline-{name}"}


def start(target: str, *, code: Path, environment: Mapping[str, str] = {}) -> Start:
    """Import `module:attribute` out of a folder of code, in a process that has that and this environment, and no other.

    Raises RuntimeError with what the process said when it fails.
    """
    # Lambda's file system is read-only: no bytecode is kept there.
    variables = {**environment, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(code)}
    script = f"{inspect.getsource(_probe)}\n_probe({target!r})"
    command = [sys.executable, "-S", "-P", "-X", "importtime", "-c", script]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"starting {target!r}: {done.stderr[-1000:]}")
    probed, modules = json.loads(done.stdout), _own_milliseconds(done.stderr)
    module, clients = target.partition(":")[0], probed["clients"]
    # The target's own module makes the clients.
    if clients:
        modules[module] -= 1000 * sum(each["wall"] for each in clients.values())
    return Start(
        wall=1000 * probed["wall"],
        cpu=1000 * probed["cpu"],
        clients={service: 1000 * each["cpu"] for service, each in clients.items()},
        models=tuple(probed["models"]),
        loaded=tuple(probed["loaded"]),
        modules=modules,
    )


def _probe(target: str) -> None:
    """Import `module:attribute` in a fresh interpreter, and print as JSON what that took.

    The source of this function alone runs there: what it imports itself, Python has by then, or it is not measured. Of
    a Lambda function, the clients that are made meanwhile are timed too.
    """
    import sys
    import time

    (module, _, name), before = target.partition(":"), set(sys.modules)
    models: list[str] = []
    clients: dict[str, dict[str, float]] = {}

    def note_model(event: str, arguments: "tuple[Any, ...]") -> None:
        if event == "open" and "service-2.json" in str(arguments[0]):
            models.append(str(arguments[0]).split("/")[-3])

    def time_clients() -> None:
        module = __import__("dueline.aws.clients", fromlist=["clients"])
        make = module.client

        def made(service: str, *arguments: "Any", **named: "Any") -> "Any":
            wall, cpu = time.perf_counter(), time.process_time()
            client = make(service, *arguments, **named)
            clients[service] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            return client

        setattr(module, "client", made)  # noqa: B010

    sys.addaudithook(note_model)
    # What `-X importtime` printed before it is the interpreter's own.
    sys.stderr.write("begin\n")
    wall, cpu = time.perf_counter(), time.process_time()
    if module.startswith("dueline.functions."):
        time_clients()
    getattr(__import__(module, fromlist=[name]), name)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    loaded = sorted(set(sys.modules) - before)
    import json

    sys.stdout.write(json.dumps({"wall": wall, "cpu": cpu, "clients": clients, "models": models, "loaded": loaded}))


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "dueline"


def _own_milliseconds(importtime: str) -> dict[str, float]:
    """Return how long each module took by itself, from what `-X importtime` printed behind the mark."""
    milliseconds: dict[str, float] = defaultdict(float)
    for microseconds, module in _LINE.findall(importtime.partition("begin\n")[2]):
        milliseconds[module] += int(microseconds) / 1000
    return milliseconds


def _rounds(rounds: int, *, code: Path, compiled: Path) -> Iterator[tuple[str, Start]]:
    """Yield each start by its name."""
    for _ in range(rounds):
        for name in FUNCTIONS:
            target, variables = f"dueline.functions.{name}:handler", environment(name)
            yield name, start(target, code=code / name, environment=variables)
            yield name + _WITH_BYTECODE, start(target, code=compiled / name, environment=variables)
        for user in USERS:
            yield user, start(f"dueline:{user}", code=ROOT)


def _medians(starts: Sequence[Start]) -> Figures:
    """Return the medians, in milliseconds. A module's is its own: what holds one up seldom holds it up again."""
    first, ours = starts[0], [module for module in starts[0].modules if is_ours(module)]
    return {
        "wall": round(median(each.wall for each in starts), 2),
        "cpu": round(median(each.cpu for each in starts), 2),
        "ours_ms": round(sum(median(each.modules.get(module, 0.0) for each in starts) for module in ours), 2),
        "clients": round(median(sum(each.clients.values()) for each in starts), 2),
        "made": list(first.clients),
        "modules": len(first.loaded),
        "ours": sum(map(is_ours, first.loaded)),
    }
