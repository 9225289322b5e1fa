"""Schedules as they stand in the table, and whether they go on."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from dueline.aws.dynamodb.table import DynamoTable
from dueline.model.queue_settings import PLANNER as OWN_QUEUE
from dueline.schedules.head import Head, read_head
from dueline.schedules.occurrence import planning_job
from tests.e2e.faults.changing import Schedule
from tests.e2e.faults.stage import Stage, all_in


def heads_of(stage: Stage, queues: Iterable[str]) -> dict[Schedule, Head]:
    """Return the head of each schedule of some queues."""
    names = stage.deployment.names
    table = DynamoTable(stage.emulator.client("dynamodb"), names.table, state=names.state)
    heads = [read_head(row) for queue in queues for row in table.heads(queue, after="", limit=1000).rows]
    return {Schedule(queue=head.queue, name=head.name): head for head in heads}


def dead(stage: Stage, queues: Iterable[str], until: datetime) -> list[str]:
    """Return the schedules that run, but are not planned by now, or of which the next planning job is nowhere."""
    done = [record for record in list(stage.proxy.records) if record.had_effect]
    submitted = {uid for record in done for uid in (*record.rows, *record.sent)}
    return [
        f"{schedule.path} at {head.planned_to.isoformat()}"
        for schedule, head in heads_of(stage, queues).items()
        if head.is_live and not (head.planned_to > until and _next_uid(head) in submitted)
    ]


def parked_planning_jobs(stage: Stage) -> list[dict[str, Any]]:
    name = stage.deployment.names.queue_dlq(OWN_QUEUE.name)
    return all_in(stage.emulator, stage.emulator.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])


def _next_uid(head: Head) -> str:
    job = planning_job(head, head.planned_to, now=head.start)
    return job.id.uid if job else ""
