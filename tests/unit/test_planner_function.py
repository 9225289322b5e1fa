"""The planner function: what Lambda brings it, what it hides, and what it answers."""

import importlib
import json
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from dueline.config.environment import PlannerSettings
from dueline.config.registry import Registry
from dueline.core.message import Message
from dueline.errors import Unavailable
from dueline.schedules.planner import Planned, PlanningMessage
from tests.builders import NOBODY, a_job, a_queue

CONTEXT = SimpleNamespace(
    function_name="dueline-planner",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:dueline-planner",
    aws_request_id="r",
    get_remaining_time_in_millis=lambda: 30_000,
)


class Inbox:
    """Notes what is hidden."""

    def __init__(self, fault=None):
        self.hidden = {}
        self.fault = fault

    def hide(self, receipts, seconds):
        if self.fault:
            raise self.fault
        self.hidden.update(zip(receipts, seconds, strict=True))


@pytest.fixture
def planner(monkeypatch):
    """The function, read as on Lambda, with two queues and no network."""
    settings = PlannerSettings(deployment="d", queue_urls="http://localhost/", tick_period=60)
    for name, value in {**settings.to_env(), **NOBODY}.items():
        monkeypatch.setenv(name, value)
    declared = SimpleNamespace(DECLARED=Registry({"emails": a_queue(), "invoices": a_queue()}))
    monkeypatch.setitem(sys.modules, "functions.declared_queues", declared)
    monkeypatch.delitem(sys.modules, "functions.planner", raising=False)
    yield importlib.import_module("functions.planner")
    sys.modules.pop("functions.planner", None)


def a_record(id, *, receives=1, **attributes):
    """Return a message as an event source mapping of SQS brings it.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    """
    by_sqs = {"ApproximateReceiveCount": str(receives), "ApproximateFirstReceiveTimestamp": "1795334400250"}
    return {
        "messageId": id,
        "receiptHandle": f"receipt of {id}",
        "body": "{}",
        "attributes": by_sqs,
        "messageAttributes": {name: {"stringValue": value} for name, value in attributes.items()},
    }


def plans(planner, monkeypatch, done, *, inbox=None):
    """Let the planner answer with `done`; return the batches that it was given."""
    batches = []

    def run(batch, *, until):
        batches.append(list(batch))
        return done

    monkeypatch.setattr(planner, "PLANNER", SimpleNamespace(run=run))
    monkeypatch.setattr(planner, "INBOX", inbox or Inbox())
    return batches


def test_step_has_the_time_of_its_first_receive(planner, monkeypatch):
    batches = plans(planner, monkeypatch, Planned())
    assert planner.handler({"Records": [a_record("m", **{"dueline-id": "x"})]}, CONTEXT) == {"batchItemFailures": []}
    first = datetime(2026, 11, 22, 8, 0, 0, 250_000, UTC)
    message = Message(body="{}", attributes={"dueline-id": "x"})
    assert batches == [[PlanningMessage(message_id="m", message=message, first_received=first)]]


def test_waiting_step_is_hidden_for_longer_each_time(planner, monkeypatch):
    records = [a_record("first"), a_record("third", receives=3), a_record("old", receives=300), a_record("done")]
    plans(planner, monkeypatch, Planned(again={"first", "third", "old"}), inbox=(inbox := Inbox()))
    answer = planner.handler({"Records": records}, CONTEXT)
    assert inbox.hidden == {"receipt of first": 2, "receipt of third": 8, "receipt of old": 60}
    assert {each["itemIdentifier"] for each in answer["batchItemFailures"]} == {"first", "third", "old"}


def test_step_that_cannot_be_hidden_comes_again(planner, monkeypatch):
    plans(planner, monkeypatch, Planned(again={"m"}), inbox=Inbox(fault=Unavailable("no answer")))
    answer = planner.handler({"Records": [a_record("m")]}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}


def reported(capsys):
    return [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "_aws" in line]


def test_planned_missed_and_dropped_are_counted(planner, monkeypatch, capsys):
    done = Planned(submitted=Counter(emails=3, invoices=2), missed=Counter(emails=1), dropped=1)
    plans(planner, monkeypatch, done)
    planner.handler({"Records": [a_record("m")]}, CONTEXT)
    of_queues = {metric["queue"]: metric for metric in reported(capsys)}
    assert (of_queues["emails"]["Planned"], of_queues["emails"]["Missed"]) == ([3], [1])
    assert of_queues["invoices"]["Planned"] == [2]
    assert "Missed" not in of_queues["invoices"]
    assert [metric["PlansDropped"] for metric in of_queues.values() if "PlansDropped" in metric] == [[1]]


def test_jobs_sent_by_the_planner_are_counted_by_lateness(planner, monkeypatch, capsys):
    caught_up = a_job(due=planner.DEPLOYMENT.clock.now() - timedelta(hours=1))
    dispatcher = planner._dispatcher("emails")

    def run(batch, *, until):
        dispatcher.dispatched.record([caught_up], now=planner.DEPLOYMENT.clock.now())
        return Planned(submitted=Counter(emails=1))

    monkeypatch.setattr(planner, "PLANNER", SimpleNamespace(run=run))
    planner.handler({"Records": [a_record("m")]}, CONTEXT)
    [metric] = reported(capsys)
    assert (metric["Planned"], metric["Dispatched"], metric["OnTime"], metric["Delayed"]) == ([1], [1], [0], [1])


@pytest.mark.parametrize(("stalled", "queues"), [(0, []), (2, [{"invoices": 2}])])
def test_watch_counts_stalled_schedules_of_all_queues(planner, monkeypatch, capsys, caplog, stalled, queues):
    watched(planner, monkeypatch, emails=0, invoices=stalled)
    planner.handler({"watch": True}, CONTEXT)
    [metric] = reported(capsys)
    assert metric["StandingStill"] == [stalled]
    assert [line.queues for line in caplog.records if line.message == "schedules stood still"] == queues


def test_unreadable_queue_fails_the_watch_after_the_others(planner, monkeypatch, capsys):
    watched(planner, monkeypatch, emails=Unavailable("no answer"), invoices=1)
    with pytest.raises(Unavailable):
        planner.handler({"watch": True}, CONTEXT)
    [metric] = reported(capsys)
    assert metric["StandingStill"] == [1]


def watched(planner, monkeypatch, **stalled_by_queue):
    """Let the watch find so many schedules of each queue that stand still, or raise."""

    def revive(queue, *, until):
        if isinstance(stalled_by_queue[queue], Exception):
            raise stalled_by_queue[queue]
        return stalled_by_queue[queue]

    monkeypatch.setattr(planner, "WATCHDOG", SimpleNamespace(revive=revive))
