"""A worker as one of several processes: what it tells its supervisor, and what it hears from it."""

import json
import os
import signal
import threading
from multiprocessing import Pipe

import pytest

from dueline.clock import SystemClock
from dueline.model.message import Message
from dueline.worker import worker as worker_module
from dueline.worker.processes.link import HURRY, Link
from dueline.worker.worker import Environment, Worker, supervised
from tests.waiting import HANG_SECONDS
from tests.work import Events, a_connection, due_now, wait_until


class Supervised:
    """A worker with one job, which is held until it is let go. `supervisor` is the supervisor's end of its link."""

    def __init__(self, monkeypatch):
        connection, self.begun, self.held, self.done = a_connection(), threading.Event(), threading.Event(), []
        connection.levels[0].send([Message.of(due_now(1))])
        environment = Environment(
            connect=lambda queue: connection,
            clock=SystemClock(),
            report=Events(),
            serve=lambda port, ages: 1 / 0,
            schedules=lambda queue: 1 / 0,
        )
        monkeypatch.setattr("dueline.worker.receiver.LONG_POLL_SECONDS", 1)
        monkeypatch.setattr(worker_module, "connect", lambda name, session: environment)
        self.supervisor, theirs = Pipe()
        self.worker = Worker()
        self.worker.job("emails")(self._work)
        supervised(self.worker, Link(theirs, number=1))
        self.ending, self.returned = self.worker._ending, []

    def _work(self, job):
        self.has_told_first = self.supervisor.poll()
        self.begun.set()
        self.held.wait(HANG_SECONDS)
        self.done.append(job.payload)

    def run_in_a_thread(self):
        thread = threading.Thread(target=lambda: self.returned.append(self.worker.run(port=0)), daemon=True)
        thread.start()
        assert self.begun.wait(HANG_SECONDS)
        return thread


@pytest.fixture
def one(monkeypatch):
    supervised = Supervised(monkeypatch)
    yield supervised
    supervised.held.set()
    supervised.supervisor.close()


def test_it_tells_how_long_ago_each_queue_was_asked_and_hurries_when_it_hears_so(one):
    thread = one.run_in_a_thread()
    assert one.supervisor.poll(HANG_SECONDS)
    (told,) = json.loads(one.supervisor.recv_bytes()).items()
    assert told[0] == "emails"
    assert 0 <= told[1] < HANG_SECONDS
    one.supervisor.send_bytes(HURRY)
    thread.join(HANG_SECONDS)
    assert (one.returned, one.done) == ([False], [])


def test_it_tells_that_it_has_begun_before_any_job_does(one):
    """Or one that kills its process as it starts would end the supervisor, for which that process could not begin."""
    one.run_in_a_thread()
    assert one.has_told_first


def test_when_its_supervisor_is_gone_it_ends_with_its_grace(one):
    thread = one.run_in_a_thread()
    one.supervisor.close()
    assert wait_until(lambda: one.ending.is_asked)
    one.held.set()
    thread.join(HANG_SECONDS)
    assert (one.returned, one.done) == ([True], [1])


def test_told_to_end_by_its_supervisor_and_by_whoever_tells_all_processes_it_keeps_its_grace(one):
    heard, hurried = threading.Event(), []
    before = signal.signal(signal.SIGWINCH, lambda *_: heard.set())

    def tell():
        assert one.begun.wait(HANG_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        assert wait_until(lambda: one.ending.is_asked)
        os.kill(os.getpid(), signal.SIGTERM)
        # Python calls handlers in the order of their numbers: SIGWINCH, 28, after SIGTERM, 15.
        os.kill(os.getpid(), signal.SIGWINCH)
        assert heard.wait(HANG_SECONDS)
        hurried.append(one.ending.is_hurried)
        one.held.set()

    threading.Thread(target=tell, daemon=True).start()
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
        link = Link.from_env(environ)
        assert (link.number, environ, os.get_inheritable(handle)) == (3, {"HOME": "/"}, False)
        assert Link.from_env(environ) is None
