"""On time is what SQS shows within a minute of when it is due."""

import importlib
import json
import math
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest

from dueline.config import metrics
from dueline.config.environment import TickSettings
from dueline.config.registry import Registry
from dueline.core.job import Partition
from functions.telemetry import DispatchMetrics, RecordingDispatcher
from tests.builders import EMAILS, NOBODY, NOW, a_job, a_queue
from tests.system import System

INVOICES = Partition(queue="invoices", number=0)


def answer(on_time, delayed):
    return {metrics.DISPATCHED: on_time + delayed, metrics.ON_TIME: on_time, metrics.DELAYED: delayed}


@pytest.mark.parametrize(("late", "on_time"), [(-600, True), (0, True), (60, True), (60.001, False)])
def test_job_sent_within_a_minute_of_due_is_on_time(late, on_time):
    dispatched = DispatchMetrics()
    dispatched.record([a_job(due=NOW)], now=NOW + timedelta(seconds=late))
    assert dispatched.flush() == {"emails": answer(int(on_time), int(not on_time))}


def test_jobs_are_counted_by_queue_and_by_invocation():
    dispatched = DispatchMetrics()
    dispatched.record([a_job(due=NOW), a_job(due=NOW - timedelta(hours=1))], now=NOW)
    dispatched.record([a_job(due=NOW), a_job(partition=INVOICES, due=NOW)], now=NOW)
    assert dispatched.flush() == {"emails": answer(2, 1), "invoices": answer(1, 0)}
    assert dispatched.flush() == {}


def test_sent_jobs_count_by_the_time_of_their_wave():
    system, dispatched = System(a_queue()), DispatchMetrics()
    dispatcher = RecordingDispatcher.of(system.dispatcher("emails"), dispatched=dispatched)
    first, second = (a_job(due=NOW, uid=f"00000000-0000-4000-8000-00000000000{number}") for number in (1, 2))
    dispatcher.dispatch([first], until=math.inf)
    system.clock.sleep(61)
    dispatcher.dispatch([second], until=math.inf)
    dispatcher.dispatch([a_job(due=NOW + timedelta(days=1))], until=system.clock.monotonic() + 0.01)
    assert system.arrived() == [first.id, second.id]
    assert dispatched.flush() == {EMAILS.queue: answer(1, 1)}


@pytest.fixture
def tick(monkeypatch):
    """The function, read as on Lambda, over a deployment in memory."""
    settings = TickSettings(deployment="d", queue_urls="http://localhost/", tick_period=60, lookahead=240, lease=30)
    for name, value in {**settings.to_env(), **NOBODY}.items():
        monkeypatch.setenv(name, value)
    declared = SimpleNamespace(DECLARED=Registry({"emails": a_queue()}))
    monkeypatch.setitem(sys.modules, "functions.declared_queues", declared)
    monkeypatch.delitem(sys.modules, "functions.tick", raising=False)
    yield importlib.import_module("functions.tick")
    sys.modules.pop("functions.tick", None)


def test_a_tick_reports_how_many_of_its_jobs_were_on_time(tick, monkeypatch, capsys):
    system = System(a_queue())
    system.put(*(a_job(due=NOW - timedelta(seconds=late)) for late in (300, 61, 60, 0, -30)))
    in_memory = SimpleNamespace(
        clock=system.clock, table=system.table, dispatcher=lambda queue, precise: system.dispatcher(queue)
    )
    monkeypatch.setattr(tick, "DEPLOYMENT", in_memory)
    context = SimpleNamespace(
        function_name="dueline-tick",
        memory_limit_in_mb=512,
        invoked_function_arn="arn",
        aws_request_id="r",
        get_remaining_time_in_millis=lambda: 180_000,
    )
    tick.handler({"queue": EMAILS.queue, "partition": EMAILS.number}, context)
    [line] = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert (line["queue"], line["Dispatched"], line["OnTime"], line["Delayed"]) == ("emails", [5], [3], [2])
