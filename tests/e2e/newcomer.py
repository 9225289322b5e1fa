"""What a newcomer types."""

import os
import subprocess
import sys
from pathlib import Path

from local.template import ROOT


def local(command: str, home: Path) -> "subprocess.Popen[str]":
    """Start `python -m local` with a home of its own, so that nobody's local run is disturbed."""
    env = {**os.environ, "DUELINE_HOME": str(home)}
    typed = [sys.executable, "-m", "local", command]
    return subprocess.Popen(typed, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
