"""What was synthesized, kept for the next run: it takes seconds, and a moment to see that nothing changed."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from local.template import ROOT, synthesize

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
