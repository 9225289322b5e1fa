"""What CloudFormation asks of the API's function: that a schedule is as queues.yaml declares it.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes.html
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from dueline.aws import stack_answer
from dueline.aws.resources import Resources
from dueline.config.registry import Registry
from dueline.errors import RETRYABLE, DuelineError, NotYet, ScheduleNotFound
from dueline.model.queue_settings import QueueSettings
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.table_route import TableRoute
from dueline.schedules import reading
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.definition import Definition
from functions.http.logs_and_metrics import record_schedule

OWNER = "queues.yaml"
_PATIENCE = timedelta(seconds=10)


class DeclaredSchedules:
    """Puts and deletes the schedules that a queue's stack has, one at a time, and answers its stack.

    What may succeed later is raised, and Lambda invokes the function again.
    """

    def __init__(self, *, resources: Resources, registry: Registry) -> None:
        self._resources = resources
        self._registry = registry
        route = TableRoute(
            table=resources.table, dispatcher=self._dispatcher, clock=resources.clock, spread=resources.spread
        )
        self._changes = Changes(table=resources.table, route=route, clock=resources.clock, patience=_PATIENCE)

    def carry_out(self, event: Mapping[str, Any]) -> None:
        """Carry out what a stack asks, and tell it what came of that. Raises Throttled or Unavailable."""
        declared = event["ResourceProperties"]
        queue, name = declared["Queue"], declared["Schedule"]
        try:
            self._delete(queue, name) if event["RequestType"] == "Delete" else self._put(queue, name, declared)
        except RETRYABLE:
            raise
        except DuelineError as error:
            stack_answer.send(event, id=f"{queue}/{name}", fault=f"schedule {queue}/{name}: {error}")
            return
        stack_answer.send(event, id=f"{queue}/{name}")

    def _put(self, queue: str, name: str, declared: Mapping[str, str]) -> None:
        definition = Definition.from_dict({**json.loads(declared["Definition"]), "owner": OWNER})
        self._record("schedule put", self._changes.put(self._settings(queue), name, definition))

    def _delete(self, queue: str, name: str) -> None:
        """Delete a schedule, unless it is gone, or somebody else has made it theirs."""
        with suppress(ScheduleNotFound):
            if reading.get(queue, name, table=self._resources.table).definition.owner == OWNER:
                self._record("schedule deleted", self._changes.delete(queue, name))

    def _settings(self, queue: str) -> QueueSettings:
        """Return a queue's settings: its stack, which is being deployed, may not have published them yet."""
        try:
            return self._registry.taking(queue)
        except NotYet:
            return self._registry.queue(queue)

    def _record(self, action: str, changed: Changed) -> None:
        if changed.is_changed:
            record_schedule(action, changed, caller="CloudFormation")

    def _dispatcher(self, queue: str) -> Dispatcher:
        return self._resources.dispatcher(queue, precise=self._registry.is_precise(queue))
