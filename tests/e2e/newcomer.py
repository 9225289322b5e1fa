"""What a newcomer types."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from local.template import ROOT


def local(command: str, home: Path, *, port: int | None = None) -> "subprocess.Popen[str]":
    """Start `python -m local` with a home and ports of its own, so that nobody's local run is disturbed."""
    env = {**os.environ, "DUELINE_HOME": str(home)} | ({"DUELINE_PORT": str(port)} if port else {})
    typed = [sys.executable, "-m", "local", command]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(typed, cwd=ROOT, env=env, preexec_fn=at_a_terminal, **pipe)


def at_a_terminal() -> None:
    """Handle Ctrl-C and a closed terminal, also where the tests run in the background, which ignores them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
