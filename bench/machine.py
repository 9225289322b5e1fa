"""What a figure was measured on."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from local.template import ROOT

_SHOWN = ("boto3", "aws_lambda_powertools", "ministack")


def told() -> dict[str, str]:
    """Return what to know of this machine, of the versions, and of the moment."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        **{name: version(name) for name in _SHOWN},
        "commit": _commit(),
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
    }


def _processor() -> str:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return models[0].partition(":")[2].strip() if models else platform.machine()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
