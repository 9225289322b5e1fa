"""Calls in lanes, of which someone wants the results no more."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from dueline.core.clock import SystemClock
from dueline.core.retry import _THIS_LANE, LANES, BatchSize, Calls, Patience, in_lanes
from dueline.core.threads import Threads, in_thread
from dueline.errors import Unavailable
from dueline.testing import VirtualClock
from tests.builders import NOW
from tests.forking import run_in_fork
from tests.waiting import HANG_SECONDS, wait_until

FOR_EVER = Patience(attempts=10**9, seconds=10 * HANG_SECONDS, first_wait=10 * HANG_SECONDS, longest_wait=3600.0)


class Outage:
    """Calls that fail, all of them; `started_at` once there were some."""

    def __init__(self):
        self.started = threading.Event()
        self.count = 0

    def __call__(self, items):
        self.count += 1
        self.started.set()
        raise Unavailable("no")


def lanes_in(outage, *, how):
    """Yield a first result, and then those of an outage."""
    calls = Calls(patience=FOR_EVER, clock=SystemClock(), jitter=lambda: 0.5)
    size = BatchSize(10)

    def call(number):
        if number == 0:
            assert outage.started.wait(HANG_SECONDS)
            return 0
        if how == "one":
            return calls.run(lambda: outage([number]))
        return calls.run_each(outage, [number], size=size)

    return in_lanes(call, range(100))


def read_on(results):
    """Read all results, of which there may be some that were there already."""
    with pytest.raises(RuntimeError, match="a forked one cannot read on"):
        list(results)


@pytest.mark.parametrize("do", [read_on, Generator.close])
def test_results_half_read_before_a_fork_hang_nobody(do):
    are_forked = threading.Event()
    results = in_lanes(lambda number: number == 0 or are_forked.wait(HANG_SECONDS), range(100))
    assert next(results)
    is_ended = run_in_fork(lambda: do(results))
    are_forked.set()
    assert is_ended
    assert list(results) == [True] * 99


@pytest.mark.parametrize("how", ["one", "each"])
def test_closing_in_an_outage_waits_for_no_retries(how):
    outage, before = Outage(), set(threading.enumerate())
    results = lanes_in(outage, how=how)
    assert next(results) == 0
    ended = threading.Thread(target=results.close, daemon=True)
    ended.start()
    ended.join(HANG_SECONDS)
    assert not ended.is_alive()
    assert not [each for each in set(threading.enumerate()) - before if each.name.startswith("dueline-lane")]


def test_abandoned_lane_makes_no_further_request():
    requests = []
    calls = Calls(patience=Patience(), clock=VirtualClock(NOW), jitter=lambda: 0.5)

    def answer(items):
        requests.append(items)
        assert _THIS_LANE.ended.wait(HANG_SECONDS)
        return items

    def interrupted():
        yield [1] * 30
        assert wait_until(lambda: bool(requests), every=0.01)
        raise KeyboardInterrupt

    lanes = in_lanes(lambda items: calls.run_each(answer, items, size=BatchSize(10)), interrupted())
    with pytest.raises(KeyboardInterrupt):
        next(lanes)
    assert len(requests) == 1


@pytest.mark.parametrize("run", [Threads(8).spread, in_lanes], ids=["a pool", "lanes"])
def test_no_thread_to_be_had_is_unavailable(monkeypatch, run):
    """No call is made then, nor later; and calls in the threads that there are go on."""
    requests = []
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    with pytest.raises(Unavailable, match="no thread can be started: can't start new thread"):
        list(run(requests.append, [-1, -2]))
    monkeypatch.undo()
    assert list(run(abs, [-1, -2])) == [1, 2]
    assert requests == []


@pytest.mark.parametrize("started", range(1, LANES))
def test_threads_that_could_be_started_make_all_calls(monkeypatch, started):
    """Where one more thread cannot be started, each call is made all the same, and once."""
    start, requests, left = threading.Thread.start, [], list(range(started))

    def start_some(thread):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    def call(item):
        requests.append(item)
        return -item

    monkeypatch.setattr(threading.Thread, "start", start_some)
    assert list(in_lanes(call, range(40))) == [-item for item in range(40)]
    assert sorted(requests) == list(range(40))


def test_a_call_without_a_thread_never_begins_later(monkeypatch):
    started_at = []

    async def call():
        asyncio.get_running_loop().set_default_executor(executor)
        with monkeypatch.context() as without_threads:
            without_threads.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
            with pytest.raises(Unavailable, match="no thread can be started"):
                await in_thread(started_at.append, 1)
        assert await in_thread(abs, -1) == 1

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(call())
    assert started_at == []


def test_process_ends_while_results_are_left_unread():
    """A program that reads some results and ends, or fails, does not wait for the lanes of the rest."""
    program = "from dueline.core.retry import in_lanes; results = in_lanes(str, iter(range(100))); next(results)"
    done = subprocess.run([sys.executable, "-c", program], timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0
