"""The worker as its users have it, over queues in memory."""

import asyncio
import functools
import math
import os
import re
import signal
import threading
from types import SimpleNamespace

import pytest

from dueline.errors import QueueNotFound, Throttled
from dueline.worker.delivery import EventKind, Retries
from dueline.worker.worker import Worker, set_supervisor
from tests.builders import NOW, a_queue
from tests.forking import run_in_fork
from tests.waiting import HANG_SECONDS, wait_until
from tests.wire import failing
from tests.work import Connected, a_connection, due_now


@pytest.fixture
def connected(monkeypatch):
    return Connected(monkeypatch)


class Running:
    """A worker, or a supervisor of workers, that runs in a thread."""

    def __init__(self, worker, **options):
        self.returned, self._worker = [], worker
        self._thread = threading.Thread(target=lambda: self.returned.append(worker.run(**options)), daemon=True)
        self._thread.start()

    def end(self):
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive()
        return self.returned[0]

    def stop(self):
        self._worker.stop()
        return self.end()


def test_it_works_until_it_is_stopped(connected):
    worker, got = Worker("shop"), []
    for kind in (None, "welcome"):
        worker.job("emails", kind=kind, concurrency=3)(lambda job: got.append(job.payload))
    connected.send(due_now(1), due_now(2, kind="welcome"))
    running = Running(worker, port=9100)
    assert wait_until(lambda: sorted(got) == [1, 2])
    assert running.stop() is True
    ((port, ages),) = connected.served
    assert (connected.names, port, ages.keys()) == (["shop"], 9100, {"emails"})
    assert 0 < ages["emails"] < HANG_SECONDS
    assert max(most for what, most in connected.connection.levels[0].requests if what == "receive") <= 3
    assert [event.kinds for event in connected.events.of(EventKind.OPENED)] == [("welcome",)]
    assert connected.connection.levels[0].messages == []


@pytest.mark.parametrize(("grace", "stops"), [(0.5, 1), (10 * HANG_SECONDS, 2)])
def test_job_goes_back_after_its_grace(connected, grace, stops):
    worker, held, starts = Worker(), threading.Event(), []
    worker.job("emails")(lambda job: (starts.append(job), held.wait(HANG_SECONDS)))
    connected.send(due_now(1))
    running = Running(worker, grace=grace)
    assert wait_until(lambda: bool(starts))
    for _ in range(stops):
        worker.stop()
    assert running.end() is False
    assert connected.connection.levels[0].queue.depth().waiting == 1
    held.set()


def test_forked_child_ends_by_a_signal(connected):
    worker, outlived = Worker(), []

    @worker.job("emails")
    def handler(job):
        outlived.append(run_in_fork(lambda: os.kill(os.getpid(), signal.SIGTERM)))
        worker.stop()

    connected.send(due_now(1))
    assert worker.run() is True
    assert outlived == [False]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_and_handlers_are_restored(connected, ending):
    before, worker = signal.getsignal(ending), Worker()
    worker.job("emails")(lambda job: os.kill(os.getpid(), ending))
    connected.send(due_now(1))
    assert worker.run() is True
    assert signal.getsignal(ending) is before


def test_worker_of_another_deployment_than_the_url_is_refused(monkeypatch):
    for name, value in {"DUELINE_URL": "http://127.0.0.1:1", "DUELINE_NAME": "shop"}.items():
        monkeypatch.setenv(name, value)
    worker = Worker()
    worker.job("emails")(print)
    with pytest.raises(ValueError, match=r"the Worker is of 'dueline', but DUELINE_NAME is 'shop': make it Worker"):
        worker.run()


def test_stop_before_run_ends_one_run(connected):
    worker, got = Worker(), []
    worker.job("emails")(lambda job: got.append(job.payload))
    connected.send(due_now(1))
    worker.stop()
    assert Running(worker).end() is True
    assert (got, connected.connection.levels[0].requests) == ([], [])
    running = Running(worker)
    assert wait_until(lambda: got == [1])
    assert running.stop() is True


def test_nothing_of_a_run_is_left_behind(connected):
    before, worker, got = set(threading.enumerate()), Worker(), []

    @worker.job("emails")
    async def send(job):
        got.append(job.payload)

    for number in range(2):
        connected.send(due_now(number))
        running = Running(worker)
        assert wait_until(lambda done=number + 1: len(got) == done)
        assert running.stop() is True
        assert wait_until(lambda: set(threading.enumerate()) <= before)
        assert connected.closed == number + 1
    assert connected.served == []


def test_no_queue_receives_when_one_cannot_open(monkeypatch):
    before, connection, worker = set(threading.enumerate()), a_connection(), Worker()
    unreadable = a_connection(queue=a_queue(name="invoices"), report=connection.report)
    monkeypatch.setattr(unreadable.table, "read", failing(Throttled("slow down")))
    connected = Connected(monkeypatch, connection, invoices=unreadable)
    for queue in ("emails", "invoices"):
        worker.job(queue)(print)
    with pytest.raises(Throttled, match="slow down"):
        worker.run(queues=["emails", "invoices"])
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert connection.levels[0].requests == []
    for kind in (EventKind.OPENED, EventKind.CLOSED):
        assert sorted(event.queue for event in connected.events.of(kind)) == ["emails", "invoices"]


def test_threads_start_before_any_job(connected, monkeypatch):
    """A system without a thread left ends the worker; later, claims would end silently."""
    worker, started, at_the_job, start = Worker(concurrency=1), [], [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread)))

    @worker.job("emails")
    def handle(job):
        at_the_job.extend(started)
        worker.stop()

    connected.send(due_now(1, schedule="digest", scheduled_for=NOW, exclusive=True))
    assert worker.run() is True
    assert started == at_the_job
    assert started[-1] == "receive emails"
    assert {name.split()[0] for name in started} == {"coroutines", "emails", "claims", "watch", "receive"}


def test_coroutine_is_cancelled_after_its_grace(connected):
    worker, starts, last_words = Worker(), threading.Event(), []

    @worker.job("emails")
    async def send(job):
        starts.set()
        try:
            await asyncio.Event().wait()
        finally:
            last_words.append(job.is_claim_lost)

    connected.send(due_now(1))
    running = Running(worker, grace=0)
    assert starts.wait(60)
    assert running.stop() is False
    assert last_words == [True]
    assert connected.connection.levels[0].queue.depth().waiting == 1


def no_argument(): ...
def two_arguments(job, other): ...
def one_argument(job, *, other=1): ...


@pytest.mark.parametrize(
    ("misuse", "error", "says"),
    [
        (lambda worker: worker.job(one_argument), TypeError, 'write @worker.job("emails")'),
        (lambda worker: worker.schedule(one_argument), TypeError, 'write @worker.schedule("emails", "digest", "0 9'),
        (lambda worker: worker.job("E-mails"), QueueNotFound, "E-mails"),
        (lambda worker: worker.job("emails")(no_argument), ValueError, "of the arguments ()"),
        (lambda worker: worker.job("emails")("text"), ValueError, "the handler of queue 'emails' is 'text'"),
        (lambda worker: worker.schedule("emails", "digest", "0 9 * * *")(no_argument), ValueError, "()"),
    ],
)
def test_misused_decorator_points_at_the_users_line(misuse, error, says):
    with pytest.raises(error, match=re.escape(says)) as raised:
        misuse(Worker())
    line = misuse.__code__.co_firstlineno
    assert raised.value.__notes__ == [f"in {__file__}:{line}"]


def test_handler_may_have_arguments_with_defaults():
    worker = Worker()
    for number, call in enumerate([one_argument, print, dict, functools.partial(two_arguments, other=1)]):
        worker.job(f"queue-{number}")(call)


def test_block_requests_nothing_and_ends_a_run(connected):
    with Worker("shop") as worker:
        worker.job("emails")(print)
        worker.schedule("emails", "digest", "0 9 * * *")
    assert connected.names == []
    with Worker() as worker:
        worker.job("emails")(print)
        running = Running(worker)
        wait_until(lambda: connected.events.of(EventKind.OPENED))
    assert connected.closed == 1
    assert running.end() is True


def test_callbacks_of_a_worker_are_called(connected):
    errors, dead = [], []
    worker = Worker(on_error=lambda *each: errors.append(each), on_dead=lambda *each: dead.append(each))

    @worker.job("emails", retry=Retries(attempts=1))
    def fail(job):
        worker.stop()
        raise KeyError("name")

    connected.send(due_now())
    worker.run()
    for ((job, error),) in (errors, dead):
        assert (job.queue, str(error)) == ("emails", "'name'")


@pytest.mark.parametrize("concurrency", [0, 1001, 2.5, True, "8"])
def test_invalid_concurrency_is_refused(connected, concurrency):
    refusal = f"concurrency is {concurrency!r}: it must be from 1 to 1000"
    with pytest.raises(ValueError, match=refusal):
        Worker(concurrency=concurrency)
    worker = Worker()
    with pytest.raises(ValueError, match=refusal):
        worker.job("emails", concurrency=concurrency)(print)
    worker.job("emails")(print)
    with pytest.raises(ValueError, match=refusal):
        worker.run(concurrency=concurrency)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *(({"grace": grace}, f"grace is {grace!r}: it must be from 0 to") for grace in (-1, math.nan, "25", True)),
        ({"queues": ["invoices"]}, "queues are invoices: those with a handler are emails"),
    ],
)
def test_invalid_option_of_a_run_is_refused(connected, options, says):
    worker = Worker()
    with pytest.raises(ValueError, match="queues are none: those with a handler are none"):
        worker.run(queues=[])
    worker.job("emails")(print)
    worker.stop()
    with pytest.raises(ValueError, match=re.escape(says)):
        worker.run(**options)
    assert connected.names == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"visibility_timeout": 4}, "visibility_timeout of queue emails is 4: for a worker it must be 5 or more"),
        ({"max_receives": 2}, "attempts is 3"),
    ],
)
def test_too_small_setting_of_a_queue_is_refused(monkeypatch, settings, says):
    Connected(monkeypatch, a_connection(**settings))
    worker = Worker()
    worker.job("emails", retry=Retries(attempts=3))(print)
    worker.stop()
    with pytest.raises(ValueError, match=says):
        worker.run()


@pytest.mark.parametrize("number", [1, 2])
def test_first_process_declares_schedules_before_any_job(connected, number):
    worker = Worker()
    for queue in ("emails", "invoices"):
        worker.schedule(queue, "digest", cron="0 9 * * *")(lambda job: None)
    alone = SimpleNamespace(number=number, report_ready=worker.stop, obey=lambda shutdown: None)
    set_supervisor(worker, alone)
    assert Running(worker, queues=["emails"]).end()
    assert connected.connection.levels[0].requests == [], "before it was ready"
    assert len(connected.schedules.put_so_far) == (1 if number == 1 else 0)
