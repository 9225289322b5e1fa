"""What a newcomer types."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from local.template import ROOT


def local(command: str, home: Path) -> "subprocess.Popen[str]":
    """Start `python -m local` with a home of its own, so that nobody's local run is disturbed."""
    env = {**os.environ, "DUELINE_HOME": str(home)}
    typed = [sys.executable, "-m", "local", command]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(typed, cwd=ROOT, env=env, preexec_fn=at_a_terminal, **pipe)


def at_a_terminal() -> None:
    """Handle Ctrl-C and a closed terminal, also where the tests run in the background, which ignores them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
