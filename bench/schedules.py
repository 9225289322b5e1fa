"""What a schedule costs a month, out of what is counted of its steps, its runs, and the hourly watch over its head."""

import io
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from bench import cost
from bench.bill import MILLION, MONTH_HOURS, PRICES, TTL_DAYS, Biller, deployed, polls_month
from bench.counted import Step, row_bytes
from bench.harness import Figures, emulated_aws, print_result, run_apart
from bench.payloads import SIZES
from bench.stage import Stage, inbound_event, ticked_once
from dueline.core import rows
from dueline.core.job import Partition, StoredJob
from dueline.core.queue_settings import PLANNER
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head, between, head_row, occurrence, partition_of_schedule, planning_job, step
from dueline.schedules.rule import Rule
from tests.builders import RETENTION

RULES = {"minutely": Rule(cron="* * * * *"), "hourly": Rule(cron="0 * * * *"), "daily": Rule(cron="0 9 * * *")}
RUNS_A_MONTH = {"minutely": MONTH_HOURS * 60.0, "hourly": float(MONTH_HOURS), "daily": MONTH_HOURS / 24}
ALONE, AMONG = "alone", "among many"
# So many planning jobs in a batch of the planner's, and runs in a tick.
SHAPES = {ALONE: (1, 1), AMONG: (10, 600)}
PAYLOAD = '{"report":"orders of the day","to":"team@example.com","format":"pdf"}'
WATCHED = 200
_NONE_FAILED: dict[str, Any] = {"batchItemFailures": []}


def measure(scratch: Path) -> Figures:
    """Count in a process of its own, and bill it."""
    with emulated_aws(scratch) as environment:
        log = scratch / "schedules.log"
        counted = run_apart("bench.schedules", log=log, environment=environment)
    months = Months(counted=counted, biller=Biller(deployed=deployed(scratch)))
    return {**counted, "months": months.figures(), "idle": months.idle()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Months:
    """Bills schedules from the steps that were counted."""

    counted: Mapping[str, Any]
    biller: Biller

    def figures(self) -> dict[str, Figures]:
        """Return what a schedule of each kind costs a month, here and at EventBridge Scheduler."""
        return {
            how: {
                "runs": runs,
                "runs_a_step": self.counted["runs_a_step"][how],
                **{shape: self.schedule(how, shape) for shape in SHAPES},
                "scheduler": runs * (PRICES.schedule_million + PRICES.sqs_million) / MILLION,
                "free": runs * PRICES.sqs_million / MILLION,
            }
            for how, runs in RUNS_A_MONTH.items()
        }

    def idle(self) -> float:
        """Return what the planner costs a month before there is a schedule: its partition's ticks, and polls."""
        tick = self.biller.invocation(self._ticked(0), jobs=1) + PRICES.schedule_million
        return float(MONTH_HOURS * 60 * tick / MILLION + polls_month())

    def schedule(self, how: str, shape: str) -> float:
        """Return what a schedule costs a month, in dollars: its runs, the steps that make them, and an hourly look."""
        runs = RUNS_A_MONTH[how]
        steps, look = runs / int(self.counted["runs_a_step"][how]), self.biller.requests(Step(**self.counted["watch"]))
        a_run = self._sent(shape) + self._kept("run")
        return (runs * a_run + steps * self._step(how, shape) + MONTH_HOURS * look) / MILLION

    def _step(self, how: str, shape: str) -> float:
        """Return what a step costs with all rows that it writes, and the planning job that brings it about."""
        batch, _ = SHAPES[shape]
        planned = self.biller.invocation(Step(**self.counted["steps"][f"{how}|{batch}"]))
        received = self.biller.inbound(received=batch, deleted=batch)
        return planned + received + self._sent(shape) + self._kept("planning job")

    def _sent(self, shape: str) -> float:
        """Return what a job adds to the ticks, which are there for all jobs."""
        _, jobs = SHAPES[shape]
        ticked, idle = (self.biller.invocation(self._ticked(each), jobs=jobs) for each in (jobs, 0))
        return ticked - idle

    def _ticked(self, jobs: int) -> Step:
        return Step(**self.counted["ticks"][str(jobs)])

    def _kept(self, row: str) -> float:
        return self.biller.kept(self.counted["row_bytes"][row], days=RETENTION.days + TTL_DAYS)


class Planning:
    """Counts the planner's steps, and the ticks around them, on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._counting, self._numbers = stage, cost.Counting(stage), count()
        # Runs that are planned lie hours ahead: they go by the table, as all that is planned in time.
        self._from = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) + timedelta(hours=2)
        stage.put([ticked_once(Partition(queue=PLANNER.name, number=0))])

    def all(self) -> Figures:
        """Return each step as it was counted, how large rows are, and how many runs a step makes."""
        # For what a process does only once.
        self._planned("daily", 10)
        self._ticked(1)
        self._watched()
        batches = [batch for batch, _ in SHAPES.values()]
        return {
            "steps": {f"{how}|{many}": asdict(self._planned(how, many)) for how in RULES for many in batches},
            "ticks": {str(jobs): asdict(self._ticked(jobs)) for jobs in (0, *(jobs for _, jobs in SHAPES.values()))},
            "watch": asdict(self._watched()),
            "runs_a_step": {how: len(self._runs(how)) for how in RULES},
            "row_bytes": self._row_bytes(),
        }

    def _planned(self, how: str, many: int) -> Step:
        event = inbound_event(map(_planning_job, self._heads(how, many)))
        return self._counting.invoked("planner", event, jobs=many, is_right=lambda answer: answer == _NONE_FAILED)

    def _watched(self) -> Step:
        """Count a watch over so many schedules, but for what it costs with none."""
        self._heads("daily", WATCHED)
        step = self._counting.invoked("planner", {"watch": True}, jobs=1, is_right=lambda _: True)
        return replace(step, jobs=sum(step.items.values()), logged=0, lines=0)

    def _ticked(self, jobs: int) -> Step:
        return self._counting.tick(SIZES[0], jobs)

    def _heads(self, how: str, many: int) -> list[Head]:
        """Put so many schedules into the table; return them."""
        heads = [self._head(f"{how}-{next(self._numbers)}", how) for _ in range(many)]
        self._stage.put(map(head_row, heads))
        return heads

    def _head(self, name: str, how: str) -> Head:
        """Return a schedule whose runs are made up to an instant."""
        return Head(
            queue=self._stage.settings.name,
            name=name,
            definition=Definition(rule=RULES[how], payload=PAYLOAD),
            generation=1,
            start=self._from,
            partition=partition_of_schedule(self._stage.settings, name),
            planned_to=self._from,
            retention=RETENTION,
        )

    def _runs(self, how: str) -> list[datetime]:
        return list(between(RULES[how], self._from, step(RULES[how], self._from)))

    def _row_bytes(self) -> dict[str, int]:
        head = self._head("a-schedule", "daily")
        run, planning = occurrence(head, self._runs("daily")[0]), _planning_job(head)
        made = {"run": rows.job_row(run), "planning job": rows.job_row(planning), "head": head_row(head)}
        return {name: row_bytes(row) for name, row in made.items()}


def _planning_job(head: Head) -> StoredJob:
    """Return the planning job of the next step of a schedule."""
    job = planning_job(head, head.planned_to, now=head.planned_to)
    if job is None:
        raise RuntimeError(f"{head.name} runs no more")
    return job


if __name__ == "__main__":
    sys.stdout = out = io.StringIO()
    print_result(Planning(Stage(out)).all())
