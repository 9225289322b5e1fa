"""Calls in lanes, of which someone wants the results no more."""

import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from dueline.clock import SystemClock
from dueline.errors import Unavailable
from dueline.memory import VirtualClock
from dueline.retry.calls import Calls, in_lanes
from dueline.retry.pace import Pace
from dueline.retry.patience import Patience
from dueline.retry.threads import Threads
from tests.builders import NOW
from tests.forked import in_a_child
from tests.waiting import HANG_SECONDS, wait_until

FOR_EVER = Patience(attempts=10**9, seconds=10 * HANG_SECONDS, first_wait=10 * HANG_SECONDS, longest_wait=3600.0)


class Outage:
    """Calls that fail, all of them; `begun` once there were some."""

    def __init__(self):
        self.begun = threading.Event()
        self.count = 0

    def __call__(self, items):
        self.count += 1
        self.begun.set()
        raise Unavailable("no")


def lanes_in(outage, *, ask):
    """Yield a first result, and then those of an outage."""
    calls = Calls(patience=FOR_EVER, clock=SystemClock(), jitter=lambda: 0.5)
    pace = Pace(most=10)

    def call(number):
        if number == 0:
            assert outage.begun.wait(HANG_SECONDS)
            return 0
        if ask == "one":
            return calls.ask(lambda: outage([number]))
        return calls.ask_for_each(outage, [number], pace=pace)

    return in_lanes(call, range(100))


def read_on(results):
    """Read all results, of which there may be some that were there already."""
    with pytest.raises(RuntimeError, match="a forked one cannot read on"):
        list(results)


@pytest.mark.parametrize("do", [read_on, Generator.close])
def test_results_that_were_half_read_before_a_fork_do_not_hang_in_the_child_and_go_on_in_the_parent(do):
    are_forked = threading.Event()
    results = in_lanes(lambda number: number == 0 or are_forked.wait(HANG_SECONDS), range(100))
    assert next(results)
    is_ended = in_a_child(lambda: do(results))
    are_forked.set()
    assert is_ended
    assert list(results) == [True] * 99


@pytest.mark.parametrize("ask", ["one", "each"])
def test_who_leaves_in_an_outage_waits_for_what_is_under_way_and_not_for_what_is_to_be_tried_again(ask):
    outage, before = Outage(), set(threading.enumerate())
    results = lanes_in(outage, ask=ask)
    assert next(results) == 0
    ended = threading.Thread(target=results.close, daemon=True)
    ended.start()
    ended.join(HANG_SECONDS)
    assert not ended.is_alive()
    assert not [each for each in set(threading.enumerate()) - before if each.name.startswith("ThreadPoolExecutor")]


def test_once_nobody_wants_the_results_of_a_lane_no_further_request_is_made(monkeypatch):
    asked, left = [], threading.Event()
    calls = Calls(patience=Patience(), clock=VirtualClock(NOW), jitter=lambda: 0.5)

    class Pool(ThreadPoolExecutor):
        def shutdown(self, **how):
            left.set()
            super().shutdown(**how)

    def answer(items):
        asked.append(items)
        assert left.wait(HANG_SECONDS)
        return items

    def interrupted():
        yield [1] * 30
        assert wait_until(lambda: bool(asked), every=0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr("dueline.retry.calls.ThreadPoolExecutor", Pool)
    lanes = in_lanes(lambda items: calls.ask_for_each(answer, items, pace=Pace(most=10)), interrupted())
    with pytest.raises(KeyboardInterrupt):
        next(lanes)
    assert len(asked) == 1


def test_calls_go_on_after_the_main_thread_has_ended():
    code = """
import atexit
from dueline.retry.calls import in_lanes
from dueline.retry.threads import Threads
spread = Threads(8).spread
atexit.register(lambda: print(list(spread(abs, [-1, -2])), list(in_lanes(abs, [-3])), list(spread(abs, [-4]))))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("[1, 2] [3] [4]\n", "")


def test_what_a_pool_began_no_thread_for_is_carried_out_once(monkeypatch):
    refuse = Mock(side_effect=RuntimeError("can't start new thread"))
    carried_out, spread = [], Threads(8).spread
    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", refuse)
        list(spread(carried_out.append, [1, 2]))
    list(spread(carried_out.append, [3, 4]))
    assert sorted(carried_out) == [1, 2, 3, 4]
