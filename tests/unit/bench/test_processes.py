"""Processes of a run end with it."""

import os
import sys

import pytest

from bench.processes import running, wait_until
from tests.waiting import HANG_SECONDS

PARENT = """
import signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(child.pid, flush=True)
time.sleep(3600)
"""


def _is_there(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _interrupted(log):
    """Start a process and its child; return their ids as Ctrl-C ends the run."""
    told = []
    try:
        with running([sys.executable, "-c", PARENT], log=log) as process:
            wait_until(lambda: log.read_text().strip().isdigit(), what="the child is there", seconds=HANG_SECONDS)
            told += [process.pid, int(log.read_text())]
            assert all(map(_is_there, told))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return told


def test_a_process_ends_with_its_context_and_all_that_it_started_too(tmp_path):
    started = _interrupted(tmp_path / "log")
    wait_until(lambda: not any(map(_is_there, started)), what="both have ended", seconds=HANG_SECONDS)


def test_a_process_has_the_environment_on_top_of_ours(tmp_path):
    command = [sys.executable, "-c", "import os; print(os.environ['LATENESS_TEST'], 'PATH' in os.environ)"]
    with running(command, log=tmp_path / "log", environment={"LATENESS_TEST": "told"}) as process:
        process.wait(HANG_SECONDS)
    assert (tmp_path / "log").read_text().split() == ["told", str("PATH" in os.environ)]


def test_what_does_not_happen_in_time_is_named():
    with pytest.raises(TimeoutError, match="the consumer is ready: not within 0 s"):
        wait_until(lambda: False, what="the consumer is ready", seconds=0)
