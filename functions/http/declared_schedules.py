"""What CloudFormation asks of the API's function: that a schedule is as queues.yaml declares it.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes.html
"""

import json
import random
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from dueline.aws import stack_answer
from dueline.aws.resources import Resources
from dueline.config.registry import Registry
from dueline.errors import RETRYABLE, DuelineError, NotYet, ScheduleChanged, ScheduleNotFound
from dueline.model.queue_settings import QueueSettings
from dueline.model.schedule_rows import OF_QUEUES_YAML
from dueline.protocol.dispatch import Dispatcher
from dueline.protocol.table_route import TableRoute
from dueline.retry.calls import Calls
from dueline.retry.patience import Patience
from dueline.schedules import reading
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.definition import Definition
from functions.http.logs_and_metrics import record_schedule

# The function has 20 s: a request, and the answer to the stack, take up to 5 s each.
_PATIENCE = Patience(attempts=10, seconds=9, first_wait=0.2, longest_wait=2.0)
# Others may change meanwhile what is to be deleted.
_TIMES = 5


class DeclaredSchedules:
    """Puts and deletes the schedules that a queue's stack has, one at a time, and answers its stack.

    What may succeed later is tried again within the function's time, and then raised: Lambda invokes it again.
    """

    def __init__(self, *, resources: Resources, registry: Registry) -> None:
        self._resources = resources
        self._registry = registry
        self._clock = resources.clock

    def carry_out(self, event: Mapping[str, Any]) -> None:
        """Carry out what a stack asks, and tell it what came of that. Raises Throttled or Unavailable."""
        until = self._clock.monotonic() + _PATIENCE.seconds
        calls = Calls(patience=_PATIENCE, clock=self._clock, jitter=random.random)
        try:
            calls.ask(partial(self._try, event, until=until))
        except RETRYABLE as error:
            raise type(error)(f"schedule {_id(event)}: {error}") from error

    def _try(self, event: Mapping[str, Any], *, until: float) -> None:
        declared, changes = event["ResourceProperties"], self._changes(until)
        try:
            self._delete(declared, changes) if event["RequestType"] == "Delete" else self._put(declared, changes)
        except RETRYABLE:
            raise
        except DuelineError as error:
            stack_answer.send(event, id=_id(event), fault=f"schedule {_id(event)}: {error}")
            return
        stack_answer.send(event, id=_id(event))

    def _changes(self, until: float) -> Changes:
        """Return what changes schedules, and begins nothing after `until` (monotonic)."""
        table, left = self._resources.table, timedelta(seconds=until - self._clock.monotonic())
        route = TableRoute(table=table, dispatcher=self._dispatcher, clock=self._clock, spread=self._resources.spread)
        return Changes(table=table, route=route, clock=self._clock, patience=left)

    def _put(self, declared: Mapping[str, str], changes: Changes) -> None:
        definition = Definition.from_dict({**json.loads(declared["Definition"]), "owner": OF_QUEUES_YAML})
        queue = self._settings(declared["Queue"])
        self._record("schedule put", changes.put(queue, declared["Schedule"], definition))

    def _delete(self, declared: Mapping[str, str], changes: Changes) -> None:
        """Delete a schedule, unless it is gone, or somebody else has made it theirs."""
        queue, name = declared["Queue"], declared["Schedule"]
        for _ in range(_TIMES):
            with suppress(ScheduleChanged):
                with suppress(ScheduleNotFound):
                    head = reading.get(queue, name, table=self._resources.table)
                    if head.definition.owner == OF_QUEUES_YAML:
                        self._record("schedule deleted", changes.delete(queue, name, if_match=head.etag))
                return
        raise NotYet(f"it was changed by others at each of {_TIMES} tries")

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


def _id(event: Mapping[str, Any]) -> str:
    declared = event["ResourceProperties"]
    return f"{declared['Queue']}/{declared['Schedule']}"
