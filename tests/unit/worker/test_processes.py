"""`dueline worker --processes`, with real processes whose queues are in memory."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from local.emulator import free_port
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[3]
# Each process has a queue of its own, with one job.
THEIRS = """
import contextlib
from dueline import Worker
from dueline.core.clock import SystemClock
from dueline.core.message import Message
from dueline.worker import log, prometheus, receiving, worker as worker_module
from tests.work import a_connection, due_now

def connect(name, session):
    connection, counted = a_connection(), prometheus.Metrics()
    connection.levels[0].send([Message.of(due_now(1))])

    def report(event):
        counted(event)
        log.log(event)

    needed = {"connect": lambda queue: connection, "clock": SystemClock(), "report": report}
    return worker_module.Environment(**needed, serve=None, schedules=None)

receiving.LONG_POLL_SECONDS = 1
worker_module.connect = connect
worker = Worker()
worker.job("emails")(lambda job: None)
"""


@pytest.fixture
def start(tmp_path):
    """Start the command in a folder of someone's."""
    started = []

    def start(module, *options):
        (tmp_path / "theirs.py").write_text(module)
        command = [sys.executable, "-m", "dueline", "worker", "theirs:worker", "--processes", "2", *options]
        environ = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
        with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
            started.append(subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=out, stderr=err))
        return started[-1]

    yield start
    for each in started:
        # Its processes end when it is gone.
        each.kill()
        each.wait()


def get(port, path):
    opener = build_opener(ProxyHandler({}))
    try:
        answer = opener.open(f"http://127.0.0.1:{port}{path}", timeout=HANG_SECONDS)
    except HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.read().decode()


def healthy_pids(port):
    """Wait until all are healthy; return their ids."""
    pids = []

    def is_healthy():
        with suppress(URLError):
            status, text = get(port, "/health")
            pids[:] = [each["pid"] for each in json.loads(text)["processes"]]
            return status == 200
        return False

    assert wait_until(is_healthy)
    return pids


def succeeded(port):
    families = text_string_to_metric_families(get(port, "/metrics")[1])
    return [sample.value for family in families for sample in family.samples if sample.name.endswith("succeeded_total")]


def test_killed_process_is_replaced_and_all_end_with_supervisor(start, tmp_path):
    port = free_port()
    supervisor = start(THEIRS, "--port", str(port))
    first, second = healthy_pids(port)
    assert wait_until(lambda: succeeded(port) == [2])
    os.kill(second, signal.SIGKILL)
    assert wait_until(lambda: succeeded(port) == [3])
    again, third = healthy_pids(port)
    assert (again, third == second) == (first, False)
    # The third counts on in the files of the second.
    assert len(list(tmp_path.glob("dueline-metrics-*/counter_*"))) == 2
    lines = lambda: [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]  # noqa: E731
    supervisor.kill()
    closed = lambda: {line["pid"] for line in lines() if line["message"] == "closed"}  # noqa: E731
    assert wait_until(lambda: closed() == {first, third})
    reported = [(line["level"], line["message"], line["pid"]) for line in lines() if "number" in line]
    assert reported == [
        ("INFO", "process started", first),
        ("INFO", "process started", second),
        ("WARNING", "process died", second),
        ("INFO", "process started", third),
    ]


def test_broken_module_is_reported_once_with_exit_code_2(start, tmp_path):
    supervisor = start("1 / 0\n")
    assert supervisor.wait(HANG_SECONDS) == 2
    (line,) = (tmp_path / "err").read_text().splitlines()
    assert "importing 'theirs' failed: ZeroDivisionError: division by zero" in line
