"""Synthesize the stacks as `cdk synth` does, with the periods of a local run."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import yaml

from dueline.config.deployment import load

ROOT = Path(__file__).parent.parent
PERIODS = Path(__file__).parent / "periods.yaml"
# The CDK's rules on templates take longer than all else; `cdk deploy` and `make soak` hold the same stacks to them.
UNVALIDATED = {"CDK_VALIDATION": "false"}


class SynthesisError(RuntimeError):
    """The stacks could not be synthesized; the message is what app.py said."""


def configure(queues: Path, *, out: Path, periods: Path | None = PERIODS) -> Path:
    """Write `queues` with the periods of a local run into the folder `out`; return the file.

    Raises ConfigurationError, which names `queues` and every field in it that is wrong.
    """
    load(queues)
    settings = yaml.safe_load(queues.read_text()) or {}
    if periods is not None:
        settings |= yaml.safe_load(periods.read_text())
    out.mkdir(parents=True, exist_ok=True)
    configured = out / "queues.yaml"
    configured.write_text(yaml.safe_dump(settings, sort_keys=False))
    return configured


def synthesize(queues: Path, *, out: Path) -> Path:
    """Synthesize the deployment that the file `queues` describes into the folder `out`; return it."""
    if shutil.which("node") is None:
        raise SynthesisError("Node.js 20 or later is needed to synthesize the stacks: there is no `node` on the PATH")
    env = {**os.environ, **UNVALIDATED, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(_context(queues))}
    done = subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SynthesisError(done.stderr.strip() or done.stdout.strip())
    return out


def context() -> dict[str, object]:
    """Return the context of a local run: the emulator's Python has the functions' libraries."""
    declared: dict[str, object] = json.loads((ROOT / "cdk.json").read_text()).get("context", {})
    return {**declared, "libraries": "none"}


def _context(queues: Path) -> dict[str, object]:
    """Return the context of cdk.json, which the CDK's command line passes on, with the file of queues."""
    return {**context(), "queues": str(queues.resolve())}


# What an assembly is made of, beside the settings.
_SOURCES = ("app.py", "cdk.json", "dueline", "functions", "infra")
_LIBRARIES = ("aws-cdk-lib", "cdk-nag", "constructs")
_MOST = 4


def assembly_of(queues: Path, *, kept: Path) -> Path:
    """Return the synthesized stacks of the file `queues`: as `kept` if all they are made of is as it was.

    Raises SynthesisError.
    """
    place = kept / _fingerprint(queues)
    if not place.exists():
        kept.mkdir(parents=True, exist_ok=True)
        _forget_all_but(kept, _MOST - 1)
        with tempfile.TemporaryDirectory(dir=kept, prefix=".") as scratch:
            synthesize(queues, out=Path(scratch) / "made").rename(place)
    return place


def _fingerprint(queues: Path) -> str:
    """Return what is the same if, and only if, the same would be synthesized."""
    digest = sha256(queues.read_bytes())
    digest.update(repr([sys.version, *map(version, _LIBRARIES)]).encode())
    for path in _files():
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _files() -> Iterator[Path]:
    for source in (ROOT / name for name in _SOURCES):
        yield from [source] if source.is_file() else sorted(source.rglob("*.py"))


def _forget_all_but(kept: Path, most: int) -> None:
    places = sorted(kept.glob("[0-9a-f]*"), key=lambda place: place.stat().st_mtime)
    for place in places[: max(0, len(places) - most)]:
        shutil.rmtree(place)
