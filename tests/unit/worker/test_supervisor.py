"""The supervisor of worker processes, with processes that are small scripts."""

import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from dueline.core.clock import SystemClock
from dueline.testing import VirtualClock
from dueline.worker.events import ProcessKind
from dueline.worker.runner import Shutdown
from dueline.worker.supervisor import Process, Supervisor, WorkerSlot
from tests.builders import NOW
from tests.waiting import HANG_SECONDS, wait_until

STARTED, FAILED, DIED, ENDED = ProcessKind
# Tells that it has begun, and ends when it is told to, with a code of its own.
PROCESS = """
import os, signal, sys
from multiprocessing.connection import Connection
number, handle = os.environ["DUELINE_SUPERVISED"].split(":")
link = Connection(int(handle))
BODY
"""
# They wait for a blocked signal: a handler that is called just before the script waits leaves it waiting.
GENTLE = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
link.send_bytes(b'{"emails": 0.5}')
signal.sigwait({signal.SIGTERM})
sys.exit(int(number) - 1)
"""
# Has a job that takes long: SIGTERM alone does not end it. What each was told, a file says.
BUSY = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
link.send_bytes(b'{"emails": 0.5}')
signal.sigwait({signal.SIGTERM})
with open(sys.argv[1], "a", buffering=1) as said:
    print("told", number, file=said)
    print("forced", number, link.recv_bytes().decode(), file=said)
"""


class Fast(SystemClock):
    """Time that flies."""

    def monotonic(self):
        return time.monotonic() * 50

    def sleep(self, seconds):
        time.sleep(seconds / 50)


class Run:
    """A supervisor that runs in a thread; `events` is what it reported."""

    def __init__(self, body, *args, processes=2):
        self.events, self.ending, self._returned = [], Shutdown(), []
        self.command = [sys.executable, "-c", PROCESS.replace("BODY", body), *map(str, args)]
        self.supervisor = Supervisor(
            self._start, processes=processes, clock=Fast(), jitter=lambda: 1.0, report=self.events.append
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _start(self, number):
        return Process.start(self.command, number=number, environ=os.environ, clock=Fast())

    def _run(self):
        self._returned.append(self.supervisor.run(self.ending))

    def begun(self):
        """Return the ids of the processes once all have begun."""
        told = lambda: self.supervisor.health()["processes"]  # noqa: E731
        assert wait_until(lambda: all("seconds_since_poll" in each for each in told())), self.events
        return [each["pid"] for each in told()]

    def of(self, *kinds):
        return [(event.kind, event.number, event.exit_code) for event in self.events if event.kind in kinds]

    def returned(self):
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive()
        return self._returned[0]


@pytest.fixture
def run():
    """Run a supervisor; end what a failed test leaves behind."""
    runs = []

    def start(*args, **given):
        runs.append(Run(*args, **given))
        return runs[-1]

    yield start
    for each in runs:
        each.ending.request()
        each.ending.request()
        each.returned()


def test_killed_process_is_replaced_and_others_go_on(run):
    running = run(GENTLE, processes=3)
    first, second, third = running.begun()
    os.kill(second, signal.SIGKILL)
    assert wait_until(lambda: len(running.of(STARTED)) == 4)
    assert running.begun() == [first, (replaced := running.events[-1].pid), third]
    assert replaced != second
    running.ending.request()
    # The highest of their exit codes.
    assert running.returned() == 2
    assert running.of(STARTED, DIED) == [
        *[(STARTED, number, None) for number in (1, 2, 3)],
        (DIED, 2, 128 + signal.SIGKILL),
        (STARTED, 2, None),
    ]
    assert sorted(running.of(ENDED)) == [(ENDED, 1, 0), (ENDED, 2, 1), (ENDED, 3, 2)]


def test_first_process_that_fails_to_start_ends_all(run):
    running = run("sys.exit(3)")
    assert running.returned() == 3
    assert running.of(*ProcessKind) == [(STARTED, 1, None), (ENDED, 1, 3)]


def test_restart_delay_doubles_until_a_minute_of_work():
    clock, events = VirtualClock(NOW), []
    start = lambda number: SimpleNamespace(pid=number, started=clock.monotonic(), is_ready=True)  # noqa: E731
    place = WorkerSlot(2, start=start, clock=clock, jitter=lambda: 1.0, report=events.append)

    def delay_after(seconds):
        place.start(at_any_rate=False)
        clock.sleep(seconds)
        place.note_death(7)
        again_in = events[-1].again_in
        clock.sleep(again_in - 0.01)
        assert not place.is_to_start
        clock.sleep(0.01)
        assert place.is_to_start
        return again_in

    assert [delay_after(59) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert [delay_after(60), delay_after(0)] == [1, 2]


def test_one_that_cannot_be_started_again_for_now_is_tried_later(run):
    running = run(GENTLE)
    _, second = running.begun()
    command, running.command = running.command, ["/nowhere/python"]
    os.kill(second, signal.SIGKILL)
    assert wait_until(lambda: len(running.of(FAILED)) == 2)
    running.command = command
    assert running.begun()[1] != second
    failed = next(event for event in running.events if event.kind is FAILED)
    assert (failed.number, failed.again_in) == (2, 2)
    assert "/nowhere/python" in failed.reason


def test_asked_once_each_has_its_grace_and_asked_twice_none(run, tmp_path):
    said = tmp_path / "said"
    said.touch()
    running = run(BUSY, said)
    running.begun()

    def says(*expected):
        return sorted(said.read_text().splitlines()) == sorted(expected)

    running.ending.request()
    assert wait_until(lambda: says("told 1", "told 2"))
    assert running.of(ENDED) == []
    running.ending.request()
    assert running.returned() == 0
    assert says("forced 1 force", "forced 2 force", "told 1", "told 2")
    assert running.supervisor.health()["processes"] == []


def test_starting_process_ends_at_once_and_without_failure(run):
    running = run("signal.pause()")
    assert wait_until(lambda: running.of(STARTED) == [(STARTED, 1, None)])
    told = running.supervisor.health()
    assert (told["healthy"], told["processes"]) == (
        False,
        [{"pid": running.events[0].pid, "healthy": False}, {"pid": None, "healthy": False}],
    )
    running.ending.request()
    assert running.returned() == 0
    assert running.of(DIED, ENDED) == [(ENDED, 1, 128 + signal.SIGTERM)]


def test_exit_code_ignores_a_process_that_failed_to_start(run, tmp_path):
    """Told to end, a process that cannot begin (its settings cannot be read, say) has no jobs that it could lose."""
    ready = tmp_path / "ready"
    body = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}); open(sys.argv[1], 'w'); "
    running = run(body + "signal.sigwait({signal.SIGTERM}); sys.exit(1)", ready)
    assert wait_until(ready.exists)
    running.ending.request()
    assert running.returned() == 0
    assert running.of(DIED, ENDED) == [(ENDED, 1, 1)]
