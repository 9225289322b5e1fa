"""Count the planner's steps and the ticks around them, and hold the CPU of a step against its bare boto3 calls."""

import re
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from statistics import median
from typing import Any

from bench.cost.exchange import Exchange
from bench.cost.payloads import RETENTION
from bench.cost.stage import Stage
from bench.cost.step import Step, step_of
from bench.dynein import cut
from bench.lambdas import inbound_event
from bench.schedules.made import PAYLOAD, RULES, a_head, waiting_job
from dueline.model import instant, rows
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.queue_settings import PLANNER
from dueline.model.rows import FIRST, state_key
from dueline.model.units import row_bytes
from dueline.ports import WRITE_ROWS
from dueline.schedules.head import Head, head_row
from dueline.schedules.occurrence import between, occurrence, step

# What the planner is given at most, and one schedule alone.
BATCH, ALONE = 10, 1
WATCHED = 200
# A tick alone with one run, and among so many others; an idle one is what both cost anyway.
TICKED = (0, ALONE, 600)
_WITHIN_A_LOOKAHEAD = timedelta(seconds=200)
_NONE_FAILED = {"batchItemFailures": list[Any]()}


class Counting:
    """Counts on a stage, whose planner is the deployed function."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._numbers = count()
        # Runs that are planned lie hours ahead: they go by the table, as all that is planned in time.
        self._from = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) + timedelta(hours=2)
        pk, sk = state_key(Partition(queue=PLANNER.name, number=0))
        stage.table.write([{"pk": pk, "sk": sk, "fence": instant.text(instant.EPOCH), "cursor": FIRST}])

    def all(self) -> dict[str, Any]:
        """Return each step as it was counted, how large rows are, and how many runs a step makes."""
        self._planned("daily", BATCH)
        self._ticked(1)
        return {
            "steps": {f"{how}|{many}": asdict(self._planned(how, many)) for how in RULES for many in (ALONE, BATCH)},
            "ticks": {str(jobs): asdict(self._ticked(jobs)) for jobs in TICKED},
            "watch": asdict(self._watched()),
            "runs_a_step": {how: len(self._runs(how)) for how in RULES},
            "row_bytes": self._row_bytes(),
        }

    def cpu(self, how: str, *, rounds: int) -> dict[str, list[float]]:
        """Return the CPU seconds of a step, of so many batches: by the function, and by its bare calls beside it."""
        taken: dict[str, list[float]] = {"planner": [], "boto3": []}
        for _ in range(rounds):
            heads = self._heads(how, BATCH)
            invoked, exchanges = self._plan(heads)
            taken["planner"].append(invoked / BATCH)
            self._put(map(head_row, heads))
            taken["boto3"].append(_cpu_of(lambda asked=exchanges: self._repeat(asked)) / BATCH)  # type: ignore[misc]
        return taken

    def _planned(self, how: str, many: int) -> Step:
        heads = self._heads(how, many)
        with self._stage.meter.counting() as exchanges:
            invoked = self._stage.lambdas.invoke("planner", inbound_event(map(waiting_job, heads)))
        if invoked.answer != _NONE_FAILED:
            raise RuntimeError(f"a step went wrong: {invoked.answer}, {invoked.log}")
        return step_of(exchanges, jobs=many, log=invoked.log, cpu_seconds=invoked.cpu_seconds)

    def _plan(self, heads: Sequence[Head]) -> tuple[float, list[Exchange]]:
        with self._stage.meter.counting() as exchanges:
            invoked = self._stage.lambdas.invoke("planner", inbound_event(map(waiting_job, heads)))
        return invoked.cpu_seconds, list(exchanges)

    def _watched(self) -> Step:
        """Count a watch over so many schedules, but for what it costs with none."""
        self._put(map(head_row, self._heads("daily", WATCHED)))
        with self._stage.meter.counting() as exchanges:
            self._stage.lambdas.invoke("planner", {"watch": True})
        found = sum(each.items for each in exchanges)
        return replace(step_of(exchanges, jobs=found), logged=0, lines=0)

    def _ticked(self, jobs: int) -> Step:
        partition, due = self._stage.partition(), datetime.now(UTC).replace(microsecond=0) + _WITHIN_A_LOOKAHEAD
        self._put(rows.job_row(_a_run(partition, due, number)) for number in range(jobs))
        event = {"queue": partition.queue, "partition": partition.number}
        with self._stage.meter.counting() as exchanges:
            invoked = self._stage.lambdas.invoke("tick", event)
        told = step_of(exchanges, jobs=jobs, log=invoked.log, cpu_seconds=invoked.cpu_seconds)
        if told.items.get("SendMessageBatch", 0) != jobs:
            raise RuntimeError(f"a tick went wrong: {told}")
        return told

    def _heads(self, how: str, many: int) -> list[Head]:
        """Put so many schedules into the table; return them."""
        queue = self._stage.settings
        heads = [
            a_head(f"{how}-{next(self._numbers)}", RULES[how], queue=queue, planned_to=self._from) for _ in range(many)
        ]
        self._put(map(head_row, heads))
        return heads

    def _runs(self, how: str) -> list[datetime]:
        return list(between(RULES[how], self._from, step(RULES[how], self._from)))

    def _row_bytes(self) -> dict[str, int]:
        head = a_head("a-schedule", RULES["daily"], queue=self._stage.settings, planned_to=self._from)
        run, planning = occurrence(head, self._runs("daily")[0]), waiting_job(head)
        made = {"run": rows.job_row(run), "planning job": rows.job_row(planning), "head": head_row(head)}
        return {name: row_bytes(row) for name, row in made.items()}

    def _put(self, made: Any) -> None:
        for some in cut(list(made), WRITE_ROWS):
            if self._stage.table.write(some):
                raise RuntimeError("the engine throttled")

    def _repeat(self, exchanges: Sequence[Exchange]) -> None:
        clients = {"dynamodb": self._stage.dynamodb, "sqs": self._stage.sqs}
        for each in exchanges:
            getattr(clients[each.service], _snake(each.operation))(**_parameters(each.body))


def _a_run(partition: Partition, due: datetime, number: int) -> Job:
    uid = f"00000000-0000-4000-8000-{number:012x}"
    id = JobId(partition=partition, route=Route.TABLE, due=due, uid=uid)
    return Job(id=id, payload=PAYLOAD, expires=due + RETENTION, schedule="a-schedule", nominal=due)


def _cpu_of(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return time.process_time() - begun


def _snake(operation: str) -> str:
    """
    >>> _snake("BatchGetItem")
    'batch_get_item'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()


def _parameters(body: Any) -> Any:
    """Return what boto3 is given for a request of that body: bytes are base64 there."""
    if isinstance(body, Mapping):
        return {
            name: b64decode(value) if name == "B" and isinstance(value, str) else _parameters(value)
            for name, value in body.items()
        }
    return [_parameters(each) for each in body] if isinstance(body, list) else body


def rates(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the steps a CPU second, ours and bare, and how many times as many ours are."""
    ours, bare = (1 / median(taken[who]) for who in ("planner", "boto3"))
    ratio = median(theirs / own for own, theirs in zip(taken["planner"], taken["boto3"], strict=True))
    return {"planner": ours, "boto3": bare, "ratio": ratio}
