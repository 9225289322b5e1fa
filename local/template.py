"""Synthesize the stacks as `cdk synth` does, with the periods of a local run."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from sysconfig import get_path

import yaml

from dueline.config.deployment import load

ROOT = Path(__file__).parent.parent
PERIODS = Path(__file__).parent / "periods.yaml"
# The CDK's rules on templates take longer than all else; `cdk deploy` and `make soak` hold the same stacks to them.
UNVALIDATED = {"CDK_VALIDATION": "false"}


class SynthesisError(RuntimeError):
    """The stacks could not be synthesized; the message is what app.py said."""


def configure(queues: Path, *, out: Path, periods: Path = PERIODS) -> Path:
    """Write `queues` with the periods of a local run into the folder `out`; return the file.

    Raises ConfigurationError, which names `queues` and every field in it that is wrong.
    """
    load(queues)
    settings = (yaml.safe_load(queues.read_text()) or {}) | yaml.safe_load(periods.read_text())
    out.mkdir(parents=True, exist_ok=True)
    configured = out / "queues.yaml"
    configured.write_text(yaml.safe_dump(settings, sort_keys=False))
    return configured


def synthesized(queues: Path, *, cache: Path) -> Path:
    """Return the synthesized deployment that the file `queues` describes, from the folder `cache` if it is there.

    It is found again by all that it is made of: settings, code, installed libraries, the CDK's variables.
    The folder keeps the last one.
    """
    place = cache / _hash_of_inputs(queues)
    if not place.exists():
        cache.mkdir(parents=True, exist_ok=True)
        for other in cache.iterdir():
            shutil.rmtree(other)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            synthesize(queues, out=Path(scratch) / "cdk.out").rename(place)
    return place


def _hash_of_inputs(queues: Path) -> str:
    digest = sha256(queues.read_bytes())
    digest.update(json.dumps(sorted(item for item in os.environ.items() if item[0].startswith("CDK_"))).encode())
    digest.update(" ".join(sorted(path.name for path in Path(get_path("purelib")).glob("*.dist-info"))).encode())
    deployed = (path for path in (ROOT / "dueline").rglob("*") if path.is_file() and path.suffix != ".pyc")
    for path in [ROOT / "app.py", ROOT / "cdk.json", *sorted(deployed)]:
        digest.update(f"{path} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def synthesize(queues: Path, *, out: Path) -> Path:
    """Synthesize the deployment that the file `queues` describes into the folder `out`; return it."""
    if shutil.which("node") is None:
        raise SynthesisError("Node.js 20 or later is needed to synthesize the stacks: there is no `node` on the PATH")
    settings = json.dumps({**context(), "queues": str(queues.resolve())})
    env = {**os.environ, **UNVALIDATED, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": settings}
    done = subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SynthesisError(done.stderr.strip() or done.stdout.strip())
    return out


def context() -> dict[str, object]:
    """Return the context of a local run, which the CDK's command line passes on: that of cdk.json.

    The emulator's Python has the functions' libraries.
    """
    declared: dict[str, object] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return {**declared, "libraries": "none"}
