"""The release before this checkout: its code, as it was."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

from local.template import ROOT

# There is no release yet: the last commit before what is unreleased. With a release, its tag.
PREDECESSOR = "f61b892"


class UnknownPredecessor(LookupError):
    """The predecessor is not in this checkout's history, as in a shallow clone; the message says how to get it."""


def check_out(folder: Path, *paths: str) -> Path:
    """Write the predecessor's files, or those of some paths, into a folder; return it. Raises UnknownPredecessor."""
    command = ["git", "archive", PREDECESSOR, *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise UnknownPredecessor(
            f"the predecessor, {PREDECESSOR}, is not in this checkout's history: `git fetch --unshallow` brings it"
            f" ({done.stderr.decode().strip()})"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def environment_of(checkout: Path, *, beside: Path | None = None) -> dict[str, str]:
    """Return this process's environment, in which Python finds the code of another checkout, and what is beside it."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(str(each) for each in (checkout, beside) if each)}
