"""One start in a fresh interpreter."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cold import probe
from bench.cold.shares import own_milliseconds

_PROBE = str(Path(probe.__file__))


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What one start took: `wall` and `cpu` in milliseconds, `peak` in MB.

    `clients` are those of boto3 that were made, with their processor time; `models` the services whose descriptions
    were read; `modules` how long each took by itself, without the clients that were made meanwhile.
    """

    wall: float
    cpu: float
    clients: dict[str, float]
    models: tuple[str, ...]
    loaded: tuple[str, ...]
    peak: float
    modules: dict[str, float]


def start(target: str, *, code: Path, environment: Mapping[str, str] = {}) -> Start:
    """Import `module:attribute` out of a folder of code, in a process that has this environment and no other.

    Raises RuntimeError with what the process said when it fails.
    """
    # Lambda's file system is read-only: no bytecode is kept there.
    given = {**environment, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(code)}
    command = [sys.executable, "-P", "-X", "importtime", _PROBE, target]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"starting {target!r}: {done.stderr[-1000:]}")
    return read(json.loads(done.stdout), own_milliseconds(done.stderr), target=target)


def read(told: Mapping[str, Any], modules: Mapping[str, float], *, target: str) -> Start:
    """Return what the probe told of a start, and `-X importtime` of its modules. The target's own makes the clients."""
    module, clients = target.partition(":")[0], told["clients"]
    made = {module: modules[module] - 1000 * sum(each["wall"] for each in clients.values())} if clients else {}
    return Start(
        wall=1000 * told["wall"],
        cpu=1000 * told["cpu"],
        clients={service: 1000 * each["cpu"] for service, each in clients.items()},
        models=tuple(told["models"]),
        loaded=tuple(told["loaded"]),
        peak=told["peak_kilobytes"] / 1024,
        modules={**modules, **made},
    )
