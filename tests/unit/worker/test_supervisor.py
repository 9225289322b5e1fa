"""Several worker processes: their supervisor, their link to it, and the command."""

import os
import signal
import sys
import threading
import time
from multiprocessing import Pipe

import pytest

from dueline.core.clock import SystemClock
from dueline.testing import VirtualClock
from dueline.worker.runner import NO_GRACE, Shutdown, SupervisorLink
from dueline.worker.supervisor import Supervisor, WorkerSlot
from dueline.worker.worker import Worker, set_supervisor
from tests.builders import NOW
from tests.unit.test_worker import Running
from tests.waiting import HANG_SECONDS, wait_until
from tests.work import Connected, due_now

STARTED, FAILED, DIED, ENDED = "process started", "process failed to start", "process died", "process ended"
# Reports that it has started, and ends on SIGTERM, with a code of its own.
PROCESS = """
import os, signal, sys
from multiprocessing.connection import Connection
number, handle = os.environ["DUELINE_SUPERVISED"].split(":")
link = Connection(int(handle))
"""
# They wait for a blocked signal: a handler that is called just before the script waits leaves it waiting.
UNTIL_SIGTERM = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
link.send_bytes(b"ready")
signal.sigwait({signal.SIGTERM})
"""
GENTLE = UNTIL_SIGTERM + "sys.exit(int(number) - 1)"
# Then has a job that takes long: SIGTERM alone does not end it. A file says what each received.
BUSY = """
with open(sys.argv[1], "a", buffering=1) as said:
    print("term", number, file=said)
    print("forced", number, link.recv_bytes().decode(), file=said)
"""


class Fast(SystemClock):
    """Time that flies."""

    def monotonic(self):
        return time.monotonic() * 50

    def sleep(self, seconds):
        time.sleep(seconds / 50)


class Run:
    """A supervisor that runs in a thread, until it has `returned`; `lines` is what it reported."""

    def __init__(self, body, *args, processes=2):
        self.lines, self.ending = [], Shutdown()
        command = [sys.executable, "-c", PROCESS + body, *map(str, args)]
        self.slots = [
            WorkerSlot(number, command, clock=Fast(), report=self._report) for number in range(1, processes + 1)
        ]
        self.returned = Running(Supervisor(self.slots, clock=Fast()), shutdown=self.ending).end

    def _report(self, message, **about):
        about.pop("is_warning", None)
        self.lines.append((message, about))

    def pids(self):
        """Return the ids of the processes once all have started."""
        assert wait_until(lambda: all(slot.is_running and slot.is_ready for slot in self.slots)), self.lines
        started = {about["number"]: about["pid"] for message, about in self.lines if message == STARTED}
        return [started[number] for number in sorted(started)]

    def of(self, *messages):
        return [
            (message, about["number"], about.get("exit_code")) for message, about in self.lines if message in messages
        ]


@pytest.fixture
def run():
    """Run a supervisor; end what a failed test leaves behind."""
    runs = []

    def start(*args, **options):
        runs.append(Run(*args, **options))
        return runs[-1]

    yield start
    for each in runs:
        each.ending.request()
        each.ending.request()
        each.returned()


def test_killed_process_is_replaced(run):
    running = run(GENTLE, processes=3)
    first, second, third = running.pids()
    os.kill(second, signal.SIGKILL)
    assert wait_until(lambda: len(running.of(STARTED)) == 4)
    same, replaced, other = running.pids()
    assert (same, other, replaced == second) == (first, third, False)
    running.ending.request()
    # The highest of their exit codes.
    assert running.returned() == 2
    assert running.of(STARTED, DIED) == [
        *[(STARTED, number, None) for number in (1, 2, 3)],
        (DIED, 2, 128 + signal.SIGKILL),
        (STARTED, 2, None),
    ]
    assert sorted(running.of(ENDED)) == [(ENDED, 1, 0), (ENDED, 2, 1), (ENDED, 3, 2)]


def test_first_failed_start_ends_all(run):
    running = run("sys.exit(3)")
    assert running.returned() == 3
    assert running.of(STARTED, FAILED, DIED, ENDED) == [(STARTED, 1, None), (ENDED, 1, 3)]


def test_failed_restart_is_tried_later(run):
    running = run(GENTLE)
    _, second = running.pids()
    slot = running.slots[1]
    command, slot.command = slot.command, ["/nowhere/python"]
    os.kill(second, signal.SIGKILL)
    assert wait_until(lambda: len(running.of(FAILED)) == 2)
    slot.command = command
    assert running.pids()[1] != second
    failed = next(about for message, about in running.lines if message == FAILED)
    assert (failed["number"], failed["again_in"]) == (2, 2)
    assert "/nowhere/python" in failed["reason"]
    slot = WorkerSlot(2, [], clock=VirtualClock(NOW), report=print)
    assert [slot.rest() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_second_request_ends_the_grace(run, tmp_path):
    said = tmp_path / "said"
    said.touch()
    running = run(UNTIL_SIGTERM + BUSY, said)
    running.pids()

    def says(*expected):
        return sorted(said.read_text().splitlines()) == sorted(expected)

    running.ending.request()
    assert wait_until(lambda: says("term 1", "term 2"))
    assert running.of(ENDED) == []
    running.ending.request()
    assert running.returned() == 0
    assert says("forced 1 no grace", "forced 2 no grace", "term 1", "term 2")


def test_starting_process_ends_at_once(run):
    running = run("signal.pause()")
    assert wait_until(lambda: running.of(STARTED) == [(STARTED, 1, None)])
    running.ending.request()
    assert running.returned() == 0
    assert running.of(DIED, ENDED) == [(ENDED, 1, 128 + signal.SIGTERM)]


def test_shutdown_while_it_starts_is_no_failure():
    """Ctrl-C goes to the processes too: the first may have died of it before the supervisor looks."""
    shutdown, command = Shutdown(), [sys.executable, "-c", "raise SystemExit(130)"]
    slot = WorkerSlot(
        1, command, clock=Fast(), report=lambda message, **_: shutdown.request() if message == ENDED else None
    )
    assert Supervisor([slot], clock=Fast()).run(shutdown) == 0


# The link of a process


class Supervised:
    """A worker with one job, which is held until it is let go. `supervisor` is the supervisor's end of its link."""

    def __init__(self, monkeypatch):
        Connected(monkeypatch).send(due_now(1))
        self.started, self.held, self.done = threading.Event(), threading.Event(), []
        self.supervisor, theirs = Pipe()
        self.worker = Worker()
        self.worker.job("emails")(self._work)
        set_supervisor(self.worker, SupervisorLink(theirs, number=1))
        self.ending = self.worker._shutdown

    def _work(self, job):
        self.has_first_report = self.supervisor.poll()
        self.started.set()
        self.held.wait(HANG_SECONDS)
        self.done.append(job.payload)

    def run_in_a_thread(self):
        running = Running(self.worker)
        assert self.started.wait(HANG_SECONDS)
        return running


@pytest.fixture
def one(monkeypatch):
    supervised = Supervised(monkeypatch)
    yield supervised
    supervised.held.set()
    supervised.supervisor.close()


def test_link_ends_the_grace(one):
    running = one.run_in_a_thread()
    # Or a job that kills its process as it starts would end the supervisor, for which that could not begin.
    assert one.has_first_report, "before any job"
    one.supervisor.send_bytes(NO_GRACE)
    assert (running.end(), one.done) == (False, [])


def test_lost_supervisor_ends_the_worker(one):
    running = one.run_in_a_thread()
    one.supervisor.close()
    assert wait_until(lambda: one.ending.is_requested)
    one.held.set()
    assert (running.end(), one.done) == (True, [1])


def test_repeated_signal_keeps_the_grace(one):
    """Ctrl-C comes from the terminal, and from the supervisor too."""
    forced = []

    def signal_twice():
        assert one.started.wait(HANG_SECONDS)
        for _ in range(2):
            signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None)
        forced.append(one.ending.is_forced)
        one.held.set()

    threading.Thread(target=signal_twice, daemon=True).start()
    assert one.worker.run() is True
    assert (one.done, forced) == ([1], [False])


def test_jobs_programs_are_not_supervised():
    ours, theirs = Pipe()
    with ours, theirs:
        os.set_inheritable(handle := os.dup(theirs.fileno()), True)
        environ = {"DUELINE_SUPERVISED": f"3:{handle}", "HOME": "/"}
        link = SupervisorLink.from_env(environ)
        assert (link.number, environ, os.get_inheritable(handle)) == (3, {"HOME": "/"}, False)
        assert SupervisorLink.from_env(environ) is None
