"""Schedules as they lie in the table, with the planning job that waits for each."""

from datetime import datetime, timedelta

from dueline.model.job import Job
from dueline.model.queue_settings import QueueSettings
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head
from dueline.schedules.occurrence import partition_of_schedule, planning_job
from dueline.schedules.rule import Rule

# By how often they run; the day's run is at nine.
RULES = {"minutely": Rule(cron="* * * * *"), "hourly": Rule(cron="0 * * * *"), "daily": Rule(cron="0 9 * * *")}
PAYLOAD = '{"report":"orders of the day","to":"team@example.com","format":"pdf"}'


def a_head(name: str, rule: Rule, *, queue: QueueSettings, planned_to: datetime) -> Head:
    """Return a schedule whose runs are made up to an instant."""
    return Head(
        queue=queue.name,
        name=name,
        definition=Definition(rule=rule, payload=PAYLOAD),
        generation=1,
        start=planned_to,
        partition=partition_of_schedule(queue, name),
        planned_to=planned_to,
        retention=queue.retention or timedelta(days=7),
    )


def waiting_job(head: Head) -> Job:
    """Return the planning job of the next step of a schedule."""
    job = planning_job(head, head.planned_to, now=head.planned_to)
    if job is None:
        raise RuntimeError(f"{head.name} runs no more")
    return job
