"""Schedules of queues.yaml, as CloudFormation asks the API's function for them."""

import json

import pytest

from dueline.errors import Throttled, Unavailable
from tests.builders import a_queue
from tests.called import CONTEXT, call, imported
from tests.gate import Reply, open_gate

STACK = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "l"}
DIGEST = {"cron": "0 9 * * *", "payload": '{"to":"all"}'}


@pytest.fixture
def stack(monkeypatch):
    """Asks as a stack does; returns what it was answered."""
    with open_gate() as gate, imported(monkeypatch, a_queue()) as api:
        gate.api = lambda _: Reply()

        def ask(kind, definition=None, *, queue="emails"):
            asked = {"Queue": queue, "Schedule": "digest", "Definition": json.dumps(definition or DIGEST)}
            event = {
                "StackId": "s",
                "RequestId": "r",
                "LogicalResourceId": "l",
                "ResponseURL": f"{gate.url}/answer?a=b",
            }
            assert api.handler.__wrapped__({**event, "RequestType": kind, "ResourceProperties": asked}, CONTEXT) == {}
            return gate.asked[-1].json

        ask.api = api
        ask.gate = gate
        yield ask


def found(stack):
    return call(stack.api, "GET", "/queues/emails/schedules/digest")[1]


def test_one_is_put_changed_and_deleted_and_its_stack_is_told(stack):
    told = STACK | {"PhysicalResourceId": "emails/digest"}
    assert stack("Create") == told | {"Status": "SUCCESS"}
    assert (stack.gate.asked[0].method, stack.gate.asked[0].path) == ("PUT", "/answer?a=b")
    assert found(stack).items() >= {"payload": {"to": "all"}, "owner": "queues.yaml", "generation": 1}.items()
    assert stack("Create")["Status"] == "SUCCESS"
    assert found(stack)["generation"] == 1
    stack("Update", {"every": 600})
    assert found(stack)["every"] == 600
    assert [stack("Delete")["Status"], stack("Delete")["Status"]] == ["SUCCESS"] * 2
    assert found(stack)["code"] == "schedule_not_found"


def test_one_that_somebody_else_has_made_theirs_stays_when_its_stack_lets_it_go(stack):
    stack("Create")
    call(stack.api, "PUT", "/queues/emails/schedules/digest", body='{"every": 60, "owner": "svc"}', caller="ann")
    assert stack("Delete")["Status"] == "SUCCESS"
    assert found(stack)["owner"] == "svc"


def test_one_that_somebody_makes_theirs_while_its_stack_lets_it_go_stays(stack, monkeypatch):
    from functions.http import declared_schedules

    stack("Create")
    get = declared_schedules.reading.get

    def overtaken(queue, name, *, table):
        head = get(queue, name, table=table)
        call(stack.api, "PUT", "/queues/emails/schedules/digest", body='{"every": 60, "owner": "svc"}', caller="ann")
        return head

    monkeypatch.setattr(declared_schedules.reading, "get", overtaken)
    assert stack("Delete")["Status"] == "SUCCESS"
    monkeypatch.setattr(declared_schedules.reading, "get", get)
    assert found(stack)["owner"] == "svc"


def test_one_that_has_ended_is_put_because_a_deployment_may_be_rolled_back_to_it(stack):
    assert stack("Create", {"every": 60, "end": "2026-01-01T00:00:00Z"})["Status"] == "SUCCESS"
    assert found(stack)["next"] == []


def test_what_is_refused_fails_the_deployment_with_the_reason(stack):
    answer = stack("Create", {"cron": "0 25 * * *"})
    assert answer["Status"] == "FAILED"
    assert "schedule emails/digest: cron is '0 25 * * *'" in answer["Reason"]
    assert "no-such" in stack("Create", queue="no-such")["Reason"]


def test_what_fails_once_is_tried_again_before_the_stack_is_told(stack, monkeypatch):
    monkeypatch.setattr("random.random", lambda: 0.0)
    faults = [Throttled("slow down"), Unavailable("no answer")]
    table = type(stack.api.RESOURCES).table
    change = table.change

    def late(asked):
        if faults:
            raise faults.pop()
        return change(asked)

    monkeypatch.setattr(table, "change", late)
    assert stack("Create")["Status"] == "SUCCESS"
    assert faults == []
    assert len(stack.gate.asked) == 1


def test_what_may_succeed_later_is_left_to_lambda_to_try_again(stack, monkeypatch):
    monkeypatch.setattr("random.random", lambda: 0.0)

    def throttled(*_, **__):
        raise Throttled("slow down")

    monkeypatch.setattr(type(stack.api.RESOURCES).table, "heads", throttled)
    monkeypatch.setattr(type(stack.api.RESOURCES).table, "read", throttled)
    with pytest.raises(Throttled, match="schedule emails/digest: slow down"):
        stack("Create")
    assert stack.gate.asked == []
