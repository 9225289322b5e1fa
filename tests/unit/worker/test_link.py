"""A worker as one of several processes: what it reports to its supervisor, and what it hears from it."""

import json
import os
import signal
import threading
from multiprocessing import Pipe

import pytest

from dueline.core.clock import SystemClock
from dueline.core.message import Message
from dueline.worker import worker as worker_module
from dueline.worker.runner import FORCE, SupervisorLink
from dueline.worker.worker import Environment, Worker, set_supervisor
from tests.waiting import HANG_SECONDS, wait_until
from tests.work import Events, a_connection, due_now


class Supervised:
    """A worker with one job, which is held until it is let go. `supervisor` is the supervisor's end of its link."""

    def __init__(self, monkeypatch):
        connection, self.started, self.held, self.done = a_connection(), threading.Event(), threading.Event(), []
        connection.levels[0].send([Message.of(due_now(1))])
        environment = Environment(
            connect=lambda queue: connection,
            clock=SystemClock(),
            report=Events(),
            serve=lambda port, ages: 1 / 0,
            schedules=lambda queue: 1 / 0,
        )
        monkeypatch.setattr("dueline.worker.receiving.LONG_POLL_SECONDS", 1)
        monkeypatch.setattr(worker_module, "connect", lambda name, session: environment)
        self.supervisor, theirs = Pipe()
        self.worker = Worker()
        self.worker.job("emails")(self._work)
        set_supervisor(self.worker, SupervisorLink(theirs, number=1))
        self.ending, self.returned = self.worker._shutdown, []

    def _work(self, job):
        self.has_first_report = self.supervisor.poll()
        self.started.set()
        self.held.wait(HANG_SECONDS)
        self.done.append(job.payload)

    def run_in_a_thread(self):
        thread = threading.Thread(target=lambda: self.returned.append(self.worker.run(port=0)), daemon=True)
        thread.start()
        assert self.started.wait(HANG_SECONDS)
        return thread


@pytest.fixture
def one(monkeypatch):
    supervised = Supervised(monkeypatch)
    yield supervised
    supervised.held.set()
    supervised.supervisor.close()


def test_link_reports_ages_and_receives_force(one):
    thread = one.run_in_a_thread()
    assert one.supervisor.poll(HANG_SECONDS)
    (answer,) = json.loads(one.supervisor.recv_bytes()).items()
    assert answer[0] == "emails"
    assert 0 <= answer[1] < HANG_SECONDS
    one.supervisor.send_bytes(FORCE)
    thread.join(HANG_SECONDS)
    assert (one.returned, one.done) == ([False], [])


def test_it_reports_that_it_has_started_before_any_job_does(one):
    """Or one that kills its process as it starts would end the supervisor, for which that process could not begin."""
    one.run_in_a_thread()
    assert one.has_first_report


def test_when_its_supervisor_is_gone_it_ends_with_its_grace(one):
    thread = one.run_in_a_thread()
    one.supervisor.close()
    assert wait_until(lambda: one.ending.is_requested)
    one.held.set()
    thread.join(HANG_SECONDS)
    assert (one.returned, one.done) == ([True], [1])


def test_repeated_signal_keeps_the_grace_of_a_process(one):
    heard, hurried = threading.Event(), []
    before = signal.signal(signal.SIGWINCH, lambda *_: heard.set())

    def show():
        assert one.started.wait(HANG_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        assert wait_until(lambda: one.ending.is_requested)
        os.kill(os.getpid(), signal.SIGTERM)
        # Python calls handlers in the order of their numbers: SIGWINCH, 28, after SIGTERM, 15.
        os.kill(os.getpid(), signal.SIGWINCH)
        assert heard.wait(HANG_SECONDS)
        hurried.append(one.ending.is_forced)
        one.held.set()

    threading.Thread(target=show, daemon=True).start()
    try:
        assert one.worker.run() is True
    finally:
        signal.signal(signal.SIGWINCH, before)
    assert (one.done, hurried) == ([1], [False])


def test_the_programs_that_its_jobs_start_are_not_supervised():
    ours, theirs = Pipe()
    with ours, theirs:
        os.set_inheritable(handle := os.dup(theirs.fileno()), True)
        environ = {"DUELINE_SUPERVISED": f"3:{handle}", "HOME": "/"}
        link = SupervisorLink.from_env(environ)
        assert (link.number, environ, os.get_inheritable(handle)) == (3, {"HOME": "/"}, False)
        assert SupervisorLink.from_env(environ) is None
