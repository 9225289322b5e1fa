"""The planner function: what Lambda brings it, what it hides, and what it answers."""

import importlib
import json
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from dueline.config.registry import Registry
from dueline.config.settings import PlannerSettings
from dueline.errors import Unavailable
from dueline.model.message import Message
from dueline.schedules.plan_step import Received
from dueline.schedules.planner import Planned
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


def test_a_step_is_read_as_lambda_brings_it_with_the_time_of_its_first_receipt(planner, monkeypatch):
    batches = plans(planner, monkeypatch, Planned())
    assert planner.handler({"Records": [a_record("m", **{"dueline-id": "x"})]}, CONTEXT) == {"batchItemFailures": []}
    first = datetime(2026, 11, 22, 8, 0, 0, 250_000, UTC)
    message = Message(body="{}", attributes={"dueline-id": "x"})
    assert batches == [[Received(message_id="m", message=message, first_received=first)]]


def test_a_step_that_must_wait_comes_again_in_seconds_and_in_more_each_time_up_to_a_minute(planner, monkeypatch):
    records = [a_record("first"), a_record("third", receives=3), a_record("old", receives=300), a_record("done")]
    plans(planner, monkeypatch, Planned(again={"first", "third", "old"}), inbox=(inbox := Inbox()))
    answer = planner.handler({"Records": records}, CONTEXT)
    assert inbox.hidden == {"receipt of first": 2, "receipt of third": 8, "receipt of old": 60}
    assert {each["itemIdentifier"] for each in answer["batchItemFailures"]} == {"first", "third", "old"}


def test_a_step_that_could_not_be_hidden_comes_again_all_the_same(planner, monkeypatch):
    plans(planner, monkeypatch, Planned(again={"m"}), inbox=Inbox(fault=Unavailable("no answer")))
    answer = planner.handler({"Records": [a_record("m")]}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}


def reported(capsys):
    return [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "_aws" in line]


def test_runs_that_are_planned_or_missed_and_steps_that_are_given_up_are_counted(planner, monkeypatch, capsys):
    done = Planned(submitted=Counter(emails=3, invoices=2), missed=Counter(emails=1), dropped=1)
    plans(planner, monkeypatch, done)
    planner.handler({"Records": [a_record("m")]}, CONTEXT)
    of_queues = {told["queue"]: told for told in reported(capsys)}
    assert (of_queues["emails"]["Planned"], of_queues["emails"]["Missed"]) == ([3], [1])
    assert of_queues["invoices"]["Planned"] == [2]
    assert "Missed" not in of_queues["invoices"]
    assert [told["PlansDropped"] for told in of_queues.values() if "PlansDropped" in told] == [[1]]


def test_what_the_planner_sends_itself_is_told_by_queue_and_whether_it_was_on_time(planner, monkeypatch, capsys):
    caught_up = a_job(due=planner.DEPLOYED.clock.now() - timedelta(hours=1))
    dispatcher = planner._dispatcher("emails")

    def run(batch, *, until):
        dispatcher.handed_over.note([caught_up], now=planner.DEPLOYED.clock.now())
        return Planned(submitted=Counter(emails=1))

    monkeypatch.setattr(planner, "PLANNER", SimpleNamespace(run=run))
    planner.handler({"Records": [a_record("m")]}, CONTEXT)
    [told] = reported(capsys)
    assert (told["Planned"], told["Dispatched"], told["OnTime"], told["Delayed"]) == ([1], [1], [0], [1])


@pytest.mark.parametrize(("standing", "told_queues"), [(0, []), (2, [{"invoices": 2}])])
def test_the_watch_looks_at_all_queues_and_counts_the_schedules_that_stood_still_be_it_none(
    planner, monkeypatch, capsys, caplog, standing, told_queues
):
    watched(planner, monkeypatch, emails=0, invoices=standing)
    planner.handler({"watch": True}, CONTEXT)
    [told] = reported(capsys)
    assert told["StandingStill"] == [standing]
    assert [line.queues for line in caplog.records if line.message == "schedules stood still"] == told_queues


def test_a_queue_that_cannot_be_looked_at_fails_the_watch_when_it_has_looked_at_all_others(
    planner, monkeypatch, capsys
):
    watched(planner, monkeypatch, emails=Unavailable("no answer"), invoices=1)
    with pytest.raises(Unavailable):
        planner.handler({"watch": True}, CONTEXT)
    [told] = reported(capsys)
    assert told["StandingStill"] == [1]


def watched(planner, monkeypatch, **found):
    """Let the watch find so many schedules of each queue that stand still, or raise."""

    def revive(queue, *, until):
        if isinstance(found[queue], Exception):
            raise found[queue]
        return found[queue]

    monkeypatch.setattr(planner, "WATCHDOG", SimpleNamespace(revive=revive))
