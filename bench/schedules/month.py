"""What a schedule costs a month, out of what was counted: its steps, its runs, and the hourly watch over its head."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.cost.bill import MILLION, MONTH_HOURS, TTL_DAYS, Biller
from bench.cost.payloads import RETENTION
from bench.cost.plan import POLLERS
from bench.cost.step import Step
from bench.cost.ways import LONG_POLL_SECONDS, total
from bench.part import Figures

RUNS_A_MONTH = {"minutely": MONTH_HOURS * 60.0, "hourly": float(MONTH_HOURS), "daily": MONTH_HOURS / 24}
ALONE, AMONG = "alone", "among many"
# So many planning jobs in a batch of the planner's, and runs in a tick.
SHAPES = {ALONE: (1, 1), AMONG: (10, 600)}
_KEPT_DAYS = RETENTION.days + TTL_DAYS


@dataclass(frozen=True, kw_only=True, slots=True)
class Months:
    """Bills schedules from the steps that were counted; what follows is in dollars a million, or a month."""

    counted: Mapping[str, Any]
    biller: Biller

    def figures(self) -> dict[str, Figures]:
        """Return what a schedule of each kind costs a month, here and at EventBridge Scheduler."""
        return {how: self._of(how) for how in RUNS_A_MONTH}

    def idle(self) -> float:
        """Return what the planner costs a month before there is a schedule: its partition's ticks, and polls."""
        prices, ticks = self.biller.prices, MONTH_HOURS * 60
        tick = total(self.biller.invocation(Step(**self.counted["ticks"]["0"]), jobs=1)) + prices.schedule_million
        polls = POLLERS * MONTH_HOURS * 3600 / LONG_POLL_SECONDS
        return (ticks * tick + polls * prices.sqs_million) / MILLION

    def _of(self, how: str) -> Figures:
        runs, a_step = RUNS_A_MONTH[how], int(self.counted["runs_a_step"][how])
        prices = self.biller.prices
        return {
            "runs": runs,
            "runs_a_step": a_step,
            **{shape: self.schedule(how, shape) for shape in SHAPES},
            "scheduler": runs * (prices.schedule_million + prices.sqs_million) / MILLION,
            "free": runs * prices.sqs_million / MILLION,
        }

    def schedule(self, how: str, shape: str) -> float:
        """Return what a schedule costs a month, in dollars."""
        runs = RUNS_A_MONTH[how]
        steps = runs / int(self.counted["runs_a_step"][how])
        a_month = runs * self._a_run(shape) + steps * self._a_step(how, shape) + MONTH_HOURS * self._a_look()
        return a_month / MILLION

    def _a_step(self, how: str, shape: str) -> float:
        """Return what a step costs with all rows that it writes, and the planning job that brings it about."""
        batch, _ = SHAPES[shape]
        step = Step(**self.counted["steps"][f"{how}|{batch}"])
        by_lambda = self.biller.inbound(received=batch, deleted=batch)
        brought = self._handed_over(shape) + self._kept("planning job")
        return total(self.biller.invocation(step)) + total(by_lambda) + brought

    def _a_run(self, shape: str) -> float:
        return self._handed_over(shape) + self._kept("run")

    def _handed_over(self, shape: str) -> float:
        """Return what a job adds to the ticks, which are there for all jobs."""
        _, jobs = SHAPES[shape]
        ticked, idle = (Step(**self.counted["ticks"][str(count)]) for count in (jobs, 0))
        return total(self.biller.invocation(ticked, jobs=jobs)) - total(self.biller.invocation(idle, jobs=jobs))

    def _a_look(self) -> float:
        return total(self.biller.requests(Step(**self.counted["watch"])))

    def _kept(self, row: str) -> float:
        return total(self.biller.kept(self.counted["row_bytes"][row], days=_KEPT_DAYS))
