"""The worker as its users have it, over queues in memory."""

import contextlib
import os
import signal
import threading
import time

import pytest

import dueline
from dueline import worker as worker_module
from dueline.clock import SystemClock
from dueline.errors import QueueNotFound
from dueline.message import Message
from dueline.worker import Equipped, Worker
from tests.work import Events, SharedQueue, a_place, due_now, wait_until


@pytest.fixture
def place(monkeypatch):
    monkeypatch.setattr("dueline.working.receiver.LONG_POLL_SECONDS", 1)
    return a_place(SharedQueue())


@pytest.fixture
def equipped(monkeypatch, place):
    """What workers connect to; `served` has the ports that were asked for, `names` the deployments."""
    equipped = Connected(place)
    monkeypatch.setattr(worker_module, "connect", equipped.connect)
    return equipped


class Connected:
    def __init__(self, place):
        self.place, self.events, self.served, self.names = place, Events(), [], []

    def connect(self, name, *, session):
        self.names.append(name)
        return Equipped(place=self._place, clock=SystemClock(), report=self.events, serve=self._serve)

    def _place(self, queue):
        if queue != "emails":
            raise QueueNotFound(f"there is no queue {queue!r}")
        return self.place

    @contextlib.contextmanager
    def _serve(self, port, ages):
        self.served.append((port, set(ages())))
        yield port

    def send(self, *jobs):
        assert self.place.levels[0].send([Message.of(job) for job in jobs]) == []


class Running:
    """A worker that runs in a thread."""

    def __init__(self, worker, **given):
        self.returned = []
        self._thread = threading.Thread(target=lambda: self.returned.append(worker.run(**given)), daemon=True)
        self._thread.start()

    def end(self):
        self._thread.join(10)
        assert not self._thread.is_alive()
        return self.returned[0]


def test_it_works_until_it_is_stopped(equipped):
    worker, got = Worker("shop"), []
    worker.job("emails")(lambda job: got.append(job.payload))
    equipped.send(due_now(1), due_now(2))
    running = Running(worker, port=9100)
    assert wait_until(lambda: sorted(got) == [1, 2])
    worker.stop()
    assert running.end() is True
    assert (equipped.names, equipped.served) == (["shop"], [(9100, {"emails"})])
    assert equipped.place.levels[0].messages == []


def test_a_coroutine_function_is_a_handler_too(equipped):
    worker, got = Worker(), []

    @worker.job("emails")
    async def send(job):
        got.append(job.payload)

    equipped.send(due_now(1))
    running = Running(worker)
    assert wait_until(lambda: got == [1])
    worker.stop()
    assert running.end() is True
    assert equipped.served == []


def test_what_does_not_end_within_its_grace_goes_back_and_that_is_told(equipped):
    worker, held, begun = Worker(), threading.Event(), []
    worker.job("emails")(lambda job: (begun.append(job), held.wait(20)))
    equipped.send(due_now(1))
    running = Running(worker, grace=0.5)
    assert wait_until(lambda: bool(begun))
    worker.stop()
    assert running.end() is False
    assert equipped.place.levels[0].queue.depth().waiting == 1
    held.set()


def test_stopped_twice_it_takes_no_grace(equipped):
    worker, held, begun = Worker(), threading.Event(), []
    worker.job("emails")(lambda job: (begun.append(job), held.wait(20)))
    equipped.send(due_now(1))
    running = Running(worker, grace=60)
    assert wait_until(lambda: bool(begun))
    worker.stop()
    worker.stop()
    assert running.end() is False
    held.set()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_whoever_heard_it_before_hears_it_again(equipped, ending):
    before = signal.getsignal(ending)
    worker, got = Worker(), []
    worker.job("emails")(got.append)
    equipped.send(due_now(1))

    def end():
        wait_until(lambda: bool(got))
        os.kill(os.getpid(), ending)

    threading.Thread(target=end, daemon=True).start()
    assert worker.run() is True
    assert signal.getsignal(ending) is before


def test_only_the_queues_that_are_named_are_worked_at(equipped):
    worker = Worker()
    worker.job("emails")(print)
    worker.job("invoices")(print)
    running = Running(worker, queues=["emails"])
    time.sleep(0.3)
    worker.stop()
    assert running.end() is True
    with pytest.raises(QueueNotFound, match="invoices"):
        worker.run()


def test_each_queue_has_one_handler():
    worker = Worker()
    worker.job("emails")(print)
    with pytest.raises(ValueError, match="queue 'emails' has a handler already"):
        worker.job("emails")
    with pytest.raises(QueueNotFound, match="no queue is named 'E-mails'"):
        worker.job("E-mails")


@pytest.mark.parametrize("concurrency", [0, 1001])
def test_a_concurrency_that_is_none_is_refused_where_it_is_given(equipped, concurrency):
    told = f"concurrency is {concurrency}: it must be from 1 to 1000"
    with pytest.raises(ValueError, match=told):
        Worker(concurrency=concurrency)
    worker = Worker()
    with pytest.raises(ValueError, match=told):
        worker.job("emails", concurrency=concurrency)
    worker.job("emails")(print)
    with pytest.raises(ValueError, match=told):
        worker.run(concurrency=concurrency)


@pytest.mark.parametrize(("queues", "unknown"), [(["invoices"], "invoices"), ([], "none")])
def test_a_worker_without_a_handler_for_its_queues_says_which_it_has(queues, unknown):
    worker = Worker()
    if queues:
        worker.job("emails")(print)
    known = "emails" if queues else "none"
    with pytest.raises(ValueError, match=f"queues are {unknown}: those with a handler are {known}"):
        worker.run(queues=queues)


def test_a_visibility_timeout_that_is_too_short_to_renew_is_refused(monkeypatch):
    monkeypatch.setattr(worker_module, "connect", Connected(a_place(visibility_timeout=4)).connect)
    worker = Worker()
    worker.job("emails")(print)
    with pytest.raises(ValueError, match="visibility_timeout of queue emails is 4: for a worker it must be 5 or more"):
        worker.run()


def test_a_decorated_function_stays_as_it_is():
    def send(job):
        return "sent"

    assert dueline.Worker().job("emails", once=True, concurrency=3)(send) is send
