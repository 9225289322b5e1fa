"""The worker as its users have it, over queues in memory."""

import asyncio
import contextlib
import math
import os
import re
import signal
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import dueline
from dueline import Discard
from dueline.clock import SystemClock
from dueline.errors import QueueNotFound, Throttled
from dueline.lookup.control import read_control
from dueline.memory import MemoryTable
from dueline.model.control_rows import slots_key
from dueline.model.message import Message
from dueline.model.rate import Rate
from dueline.operate.control import set_rate
from dueline.ports import Refusal
from dueline.worker import worker as worker_module
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.watch.event import Kind
from dueline.worker.worker import Environment, Worker
from tests.builders import NOW, a_queue
from tests.forked import in_a_child
from tests.waiting import HANG_SECONDS
from tests.work import DeclaredSchedules, Events, SharedQueue, a_connection, due_now, wait_until


@pytest.fixture
def connection(monkeypatch):
    monkeypatch.setattr("dueline.worker.receiver.LONG_POLL_SECONDS", 1)
    return a_connection(SharedQueue())


@pytest.fixture
def connected(monkeypatch, connection):
    """What workers connect to; `served` has the ports that were asked for, `names` the deployments."""
    connected = Connected(connection)
    monkeypatch.setattr(worker_module, "connect", connected.connect)
    return connected


class Connected:
    def __init__(self, connection, **others):
        self.connections, self.connection = {"emails": connection} | others, connection
        self.events, self.served, self.names, self.closed = Events(), [], [], 0
        self.schedules = DeclaredSchedules()

    def connect(self, name, *, session):
        self.names.append(name)
        return Environment(
            connect=self._connect,
            clock=SystemClock(),
            report=self.events,
            serve=self._serve,
            schedules=self.schedules,
            close=self._close,
        )

    def _connect(self, queue):
        if queue not in self.connections:
            raise QueueNotFound(f"there is no queue {queue!r}")
        return self.connections[queue]

    def _close(self):
        self.closed += 1

    @contextlib.contextmanager
    def _serve(self, port, ages):
        self.served.append((port, set(ages())))
        yield port

    def send(self, *jobs):
        assert self.connection.levels[0].send([Message.of(job) for job in jobs]) == []


class Running:
    """A worker that runs in a thread."""

    def __init__(self, worker, **given):
        self.returned = []
        self._thread = threading.Thread(target=lambda: self.returned.append(worker.run(**given)), daemon=True)
        self._thread.start()

    def end(self):
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive()
        return self.returned[0]


def test_it_works_until_it_is_stopped(connected):
    worker, got = Worker("shop"), []
    worker.job("emails")(lambda job: got.append(job.payload))
    connected.send(due_now(1), due_now(2))
    running = Running(worker, port=9100)
    assert wait_until(lambda: sorted(got) == [1, 2])
    worker.stop()
    assert running.end() is True
    assert (connected.names, connected.served) == (["shop"], [(9100, {"emails"})])
    assert connected.connection.levels[0].messages == []


def test_a_coroutine_function_is_a_handler_too(connected):
    worker, got = Worker(), []

    @worker.job("emails")
    async def send(job):
        got.append(job.payload)

    connected.send(due_now(1))
    running = Running(worker)
    assert wait_until(lambda: got == [1])
    worker.stop()
    assert running.end() is True
    assert connected.served == []


@pytest.mark.parametrize("how", ["itself", "a task of its own"])
def test_a_coroutine_that_exits_has_failed_and_others_go_on(connected, how):
    worker, got = Worker(), []

    async def leave():
        raise SystemExit

    @worker.job("emails")
    async def send(job):
        got.append(job.payload)
        if job.payload == 1 and job.attempt == 1:
            await (leave() if how == "itself" else asyncio.create_task(leave()))

    connected.send(due_now(1))
    running = Running(worker)
    assert wait_until(lambda: bool(got))
    connected.send(due_now(2))
    assert wait_until(lambda: connected.connection.levels[0].messages == [])
    worker.stop()
    assert running.end() is True
    assert sorted(got) == [1, 1, 2]


def test_a_coroutine_that_stops_the_event_loop_does_not_end_the_work_of_others(connected):
    worker, got = Worker(), []

    @worker.job("emails")
    async def send(job):
        if job.payload == 1:
            asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        got.append(job.payload)

    connected.send(due_now(1))
    running = Running(worker, grace=1)
    assert wait_until(lambda: connected.connection.levels[0].messages == [])
    connected.send(due_now(2))
    assert wait_until(lambda: connected.connection.levels[0].messages == [])
    worker.stop()
    assert running.end() is True
    assert got == [1, 2]


def test_what_does_not_end_within_its_grace_goes_back_and_that_is_told(connected):
    worker, held, begun = Worker(), threading.Event(), []
    worker.job("emails")(lambda job: (begun.append(job), held.wait(HANG_SECONDS)))
    connected.send(due_now(1))
    running = Running(worker, grace=0.5)
    assert wait_until(lambda: bool(begun))
    worker.stop()
    assert running.end() is False
    assert connected.connection.levels[0].queue.depth().waiting == 1
    held.set()


def test_stopped_twice_it_takes_no_grace(connected):
    worker, held, begun = Worker(), threading.Event(), []
    worker.job("emails")(lambda job: (begun.append(job), held.wait(HANG_SECONDS)))
    connected.send(due_now(1))
    running = Running(worker, grace=10 * HANG_SECONDS)
    assert wait_until(lambda: bool(begun))
    worker.stop()
    worker.stop()
    assert running.end() is False
    held.set()


def test_a_job_that_is_done_is_acknowledged_within_the_grace_though_sqs_refuses_for_now(connected, monkeypatch):
    monkeypatch.setattr("dueline.worker.in_flight._FINAL_ACKS_SECONDS", 0.0)
    worker, queue, refused = Worker(), connected.connection.levels[0], []
    delete = queue.delete

    def refuse(receipts):
        # The first time, and once more after the worker was told to stop and has nothing else to do.
        if len(refused) < 2:
            if refused:
                assert wait_until(lambda: not any(each.name == "receive emails" for each in threading.enumerate()))
            refused.append(receipts)
            return [Refusal(index=0, reason="slow down", final=False)]
        return delete(receipts)

    queue.delete = refuse
    worker.job("emails")(lambda job: None)
    connected.send(due_now(1))
    running = Running(worker, grace=HANG_SECONDS)
    assert wait_until(lambda: bool(refused))
    worker.stop()
    assert running.end() is True
    assert (queue.messages, connected.events.of(Kind.LOST)) == ([], [])


def test_all_queues_finish_at_once_however_long_each_takes(monkeypatch):
    barrier = threading.Barrier(3)
    finish = QueueWorker.finish

    def meeting(worker):
        barrier.wait(HANG_SECONDS)
        return finish(worker)

    monkeypatch.setattr("dueline.worker.receiver.LONG_POLL_SECONDS", 1)
    monkeypatch.setattr(QueueWorker, "finish", meeting)
    names = ["one", "two", "three"]
    connected = Connected(a_connection(), **{name: a_connection(queue=a_queue(name=name)) for name in names})
    monkeypatch.setattr(worker_module, "connect", connected.connect)
    worker = Worker()
    for name in names:
        worker.job(name)(print)
    running = Running(worker)
    assert wait_until(lambda: len(connected.events.of(Kind.OPENED)) == 3)
    worker.stop()
    assert running.end() is True


def test_whom_a_job_forks_ends_by_a_signal_as_it_would_without_a_worker(connected):
    worker, outlived = Worker(), []

    @worker.job("emails")
    def handler(job):
        outlived.append(in_a_child(lambda: os.kill(os.getpid(), signal.SIGTERM)))
        worker.stop()

    connected.send(due_now(1))
    assert worker.run() is True
    assert outlived == [False]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_whoever_heard_it_before_hears_it_again(connected, ending):
    before = signal.getsignal(ending)
    worker, got = Worker(), []
    worker.job("emails")(got.append)
    connected.send(due_now(1))

    def end():
        wait_until(lambda: bool(got))
        os.kill(os.getpid(), ending)

    threading.Thread(target=end, daemon=True).start()
    assert worker.run() is True
    assert signal.getsignal(ending) is before


def test_a_stop_before_run_ends_it_as_it_begins_and_no_later_run(connected):
    worker, got = Worker(), []
    worker.job("emails")(lambda job: got.append(job.payload))
    connected.send(due_now(1))
    worker.stop()
    assert Running(worker).end() is True
    assert (got, connected.connection.levels[0].asked) == ([], [])
    running = Running(worker)
    assert wait_until(lambda: got == [1])
    worker.stop()
    assert running.end() is True


def test_nothing_of_a_run_is_left_behind(connected):
    before, worker, got = set(threading.enumerate()), Worker(), []

    @worker.job("emails")
    async def send(job):
        got.append(job.payload)

    for number in range(2):
        connected.send(due_now(number))
        running = Running(worker)
        assert wait_until(lambda done=number + 1: len(got) == done)
        worker.stop()
        assert running.end() is True
        assert wait_until(lambda: set(threading.enumerate()) <= before)
        assert connected.closed == number + 1


class Unreadable(MemoryTable):
    """A table that cannot be read."""

    def read(self, keys, *, consistent=True):
        raise Throttled("slow down")


def two_queues(monkeypatch, connection, table):
    """Return a worker of two queues of which the second one's table is given, and what it connects to."""
    monkeypatch.setattr("dueline.worker.receiver.LONG_POLL_SECONDS", 1)
    connected = Connected(connection, invoices=replace(a_connection(queue=a_queue(name="invoices")), table=table))
    monkeypatch.setattr(worker_module, "connect", connected.connect)
    worker = Worker()
    worker.job("invoices")(print)
    return worker, connected


def test_when_one_queue_cannot_begin_none_receives_and_those_that_are_open_end(monkeypatch):
    before, connection = set(threading.enumerate()), a_connection()
    worker, connected = two_queues(monkeypatch, connection, Unreadable())
    worker.job("emails")(print)
    with pytest.raises(Throttled, match="slow down"):
        worker.run(queues=["emails", "invoices"])
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert connection.levels[0].asked == []
    assert [event.kind for event in connected.events] == [Kind.OPENED] * 2 + [Kind.CLOSED] * 2
    for kind in (Kind.OPENED, Kind.CLOSED):
        assert sorted(event.queue for event in connected.events.of(kind)) == ["emails", "invoices"]


def test_when_one_queue_cannot_begin_the_jobs_of_another_have_their_grace(monkeypatch):
    connection, begun, held, ended = a_connection(), threading.Event(), threading.Event(), []
    worker, connected = two_queues(monkeypatch, connection, MemoryTable())
    start = threading.Thread.start

    def start_some(thread):
        if thread.name == "acknowledger invoices":
            assert begun.wait(60)
            held.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    @worker.job("emails")
    async def send(job):
        begun.set()
        while not held.is_set():
            await asyncio.sleep(0.01)
        ended.append(job.payload)

    connected.send(due_now(1))
    monkeypatch.setattr(threading.Thread, "start", start_some)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        worker.run(queues=["emails", "invoices"], grace=60)
    assert ended == [1]
    assert connection.levels[0].messages == []


def test_a_queue_that_begins_by_half_leaves_nothing_behind(connected, monkeypatch):
    before, start = set(threading.enumerate()), threading.Thread.start

    def start_some(thread):
        if thread.name == "acknowledger emails":
            raise RuntimeError("can't start new thread")
        start(thread)

    worker = Worker()
    worker.job("emails")(print)
    monkeypatch.setattr(threading.Thread, "start", start_some)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        worker.run()
    assert wait_until(lambda: set(threading.enumerate()) <= before)


def test_a_coroutine_function_that_blocks_does_not_outlive_its_grace(connected):
    worker, begun, held, ended = Worker(), threading.Event(), threading.Event(), []

    @worker.job("emails")
    async def send(job):
        begun.set()
        held.wait(60)
        ended.append(job.payload)

    connected.send(due_now(1))
    running = Running(worker, grace=0)
    assert begun.wait(60)
    worker.stop()
    assert running.end() is False
    assert ended == []
    assert connected.connection.levels[0].queue.depth().waiting == 1
    held.set()
    assert wait_until(lambda: ended == [1])


def test_a_coroutine_that_does_not_end_within_its_grace_is_cancelled_and_its_job_goes_back(connected):
    worker, begun, last_words = Worker(), threading.Event(), []

    @worker.job("emails")
    async def send(job):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            last_words.append(job.is_claim_lost)

    connected.send(due_now(1))
    running = Running(worker, grace=0)
    assert begun.wait(60)
    worker.stop()
    assert running.end() is False
    assert last_words == [True]
    assert connected.connection.levels[0].queue.depth().waiting == 1


def test_a_handler_that_ends_after_its_job_went_back_sends_no_dead_letter(connected):
    worker, begun, held, seen = Worker(), threading.Event(), threading.Event(), []

    @worker.job("emails")
    def send(job):
        begun.set()
        held.wait(60)
        seen.append(job.is_claim_lost)
        raise Discard("too late to say so")

    connected.send(due_now(1))
    before = set(threading.enumerate())
    running = Running(worker, grace=0)
    assert begun.wait(60)
    worker.stop()
    assert running.end() is False
    held.set()
    assert wait_until(lambda: set(threading.enumerate()) <= before)
    assert seen == [True]
    assert connected.connection.dead_letters.messages == []
    assert connected.connection.levels[0].queue.depth().waiting == 1


class Ahead(SystemClock):
    """AWS's time, where this machine's own clock is ten hours behind."""

    def now(self):
        return super().now() + timedelta(hours=10)


def test_the_slots_of_a_rate_are_taken_in_the_time_of_aws_which_all_workers_share(connected):
    worker, begun, connection = Worker(), threading.Event(), connected.connection
    connected.connections["emails"] = replace(connection, clock=Ahead())
    set_rate("emails", Rate.parse("50/s"), table=connection.table, now=NOW)
    key = slots_key("emails", read_control("emails", table=connection.table).rate_set)
    worker.job("emails")(lambda job: begun.set())
    connected.send(due_now(1))
    running = Running(worker)
    assert begun.wait(60)
    worker.stop()
    assert running.end() is True
    until = datetime.fromtimestamp(connection.table.read([key]).rows[key]["until"] / 1e6, UTC)
    assert until > datetime.now(UTC) + timedelta(hours=9)


def test_only_the_queues_that_are_named_are_processed(connected):
    worker = Worker()
    worker.job("emails")(print)
    worker.job("invoices")(print)
    running = Running(worker, queues=["emails"])
    assert wait_until(lambda: bool(connected.events.of(Kind.OPENED)))
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


@pytest.mark.parametrize("concurrency", [0, 1001, 2.5, True, "8"])
def test_a_concurrency_that_is_none_is_refused_where_it_is_given(connected, concurrency):
    refusal = f"concurrency is {concurrency!r}: it must be from 1 to 1000"
    with pytest.raises(ValueError, match=refusal):
        Worker(concurrency=concurrency)
    worker = Worker()
    with pytest.raises(ValueError, match=refusal):
        worker.job("emails", concurrency=concurrency)
    worker.job("emails")(print)
    with pytest.raises(ValueError, match=refusal):
        worker.run(concurrency=concurrency)


@pytest.mark.parametrize("grace", [-1, math.nan, "25", None, True, timedelta(seconds=-1)])
def test_a_grace_that_is_none_is_refused_before_any_job_runs(connected, grace):
    worker = Worker()
    worker.job("emails")(print)
    worker.stop()
    with pytest.raises(ValueError, match=re.escape(f"grace is {grace!r}: it must be 0 or more seconds")):
        worker.run(grace=grace)
    assert connected.names == []


def test_a_grace_may_be_a_timedelta(connected):
    worker = Worker()
    worker.job("emails")(lambda job: worker.stop())
    connected.send(due_now(1))
    assert worker.run(grace=timedelta(minutes=1)) is True


@pytest.mark.parametrize(("queues", "unknown"), [(["invoices"], "invoices"), ([], "none")])
def test_a_worker_without_a_handler_for_its_queues_says_which_it_has(queues, unknown):
    worker = Worker()
    if queues:
        worker.job("emails")(print)
    handled = "emails" if queues else "none"
    with pytest.raises(ValueError, match=f"queues are {unknown}: those with a handler are {handled}"):
        worker.run(queues=queues)


def test_a_visibility_timeout_that_is_too_short_to_renew_is_refused(monkeypatch):
    monkeypatch.setattr(worker_module, "connect", Connected(a_connection(visibility_timeout=4)).connect)
    worker = Worker()
    worker.job("emails")(print)
    with pytest.raises(ValueError, match="visibility_timeout of queue emails is 4: for a worker it must be 5 or more"):
        worker.run()


def test_a_decorated_function_stays_as_it_is():
    def send(job):
        return "sent"

    assert dueline.Worker().job("emails", once=True, concurrency=3)(send) is send


def test_schedules_in_the_code_are_declared_when_it_starts(connected):
    worker = Worker("shop", owner="shop")
    worker.schedule("emails", "digest", cron="0 9 * * *", zone="Europe/Berlin")(lambda job: None)
    worker.stop()
    worker.run()
    assert connected.schedules.put_so_far["digest"]["zone"] == "Europe/Berlin"
    assert connected.schedules.put_so_far["digest"]["owner"] == "shop"


@pytest.mark.parametrize("number", [1, 2])
def test_of_several_processes_the_first_declares_the_schedules(connected, number):
    worker = Worker()
    worker.schedule("emails", "digest", cron="0 9 * * *")(lambda job: None)
    worker_module.supervised(worker, Alone(number))
    worker.stop()
    worker.run()
    assert connected.schedules.requests == (1 if number == 1 else 0)


class Alone:
    """A link to a supervisor that says nothing."""

    def __init__(self, number):
        self.number = number

    def watched(self, runner, ending):
        return contextlib.nullcontext()
