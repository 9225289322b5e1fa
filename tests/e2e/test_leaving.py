"""A queue leaves when nothing is left to lose."""

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from dueline.aws.adoption import Adopter
from dueline.config.names import Names
from local.emulator import Emulator
from tests.e2e.early import schedule
from tests.e2e.inbox import wait_until

STACK = Names("e2e").queue_stack("leaving")


class Stack:
    """The queue's stack, as whoever deploys sees it."""

    def __init__(self, emulator: Emulator) -> None:
        self._client = emulator.client("cloudformation")

    def template(self) -> dict[str, Any]:
        body = self._client.get_template(StackName=STACK)["TemplateBody"]
        return json.loads(body) if isinstance(body, str) else json.loads(json.dumps(body))

    def update(self, template: dict[str, Any]) -> str:
        """Return how an update ended."""
        given = {"StackName": STACK, "TemplateBody": json.dumps(template), "Capabilities": ["CAPABILITY_NAMED_IAM"]}
        self._client.update_stack(**given)
        return self._ended()

    def delete(self) -> str:
        self._client.delete_stack(StackName=STACK)
        return self._ended()

    def _ended(self) -> str:
        assert wait_until(lambda: not self.status().endswith("IN_PROGRESS"))
        return self.status()

    def status(self) -> str:
        found = self._client.list_stacks()["StackSummaries"]
        return next(str(each["StackStatus"]) for each in found if each["StackName"] == STACK)

    def reasons(self) -> str:
        events = self._client.describe_stack_events(StackName=STACK)["StackEvents"]
        return " ".join(
            event.get("ResourceStatusReason", "") for event in events if "FAILED" in event["ResourceStatus"]
        )


def with_one_level(template: dict[str, Any]) -> dict[str, Any]:
    smaller = copy.deepcopy(template)
    for resource in smaller["Resources"].values():
        if resource["Type"] == "Custom::DuelineStrandGuard":
            resource["Properties"]["Priorities"] = 1
    return smaller


def test_a_stack_strands_no_job_and_goes_once_nothing_waits(emulator: Emulator, http: httpx.Client) -> None:
    stack, due = Stack(emulator), datetime.now(UTC) + timedelta(days=300)
    job = schedule(http, "leaving", payload=1, priority=2, at=due.isoformat())
    deployed = stack.template()
    assert stack.update(with_one_level(deployed)) == "UPDATE_ROLLBACK_COMPLETE"
    assert f"1 job of priorities from 2 on, due until {job['due']} at the latest" in stack.reasons()
    assert stack.delete() == "DELETE_FAILED"
    assert f"strand 1 job, due until {job['due']} at the latest" in stack.reasons()
    assert http.delete(f"/queues/leaving/jobs/{job['id']}").status_code == 200
    assert stack.delete() == "DELETE_COMPLETE"
    adopter = Adopter(client=emulator.client)
    left = adopter.plan(STACK, deployed)
    assert {each["ResourceIdentifier"]["QueueUrl"].rpartition("/")[2] for each in left.imports} == {
        "e2e_leaving",
        "e2e_leaving_p2",
        "e2e_leaving_dlq",
    }
    assert left.schedules == [("e2e-ticks", "leaving.0")]
    adopter.carry_out(left)
    assert stack.status() == "IMPORT_COMPLETE"
    again = adopter.plan(STACK, deployed)
    assert (again.imports, again.schedules) == ([], [])
    assert stack.update(deployed) == "UPDATE_COMPLETE"
    assert schedule(http, "leaving", payload=1, priority=2)["route"] == "direct"
