"""What came out, as tables."""

from collections.abc import Mapping
from typing import Any

from bench.part import Figures
from bench.schedules.month import ALONE, AMONG
from bench.tables import table


def markdown(figures: Figures) -> str:
    return "\n\n".join(
        [
            "### What a schedule costs a month\n\n" + _months(figures["months"]),
            f"The planner itself, with no schedule: ${figures['idle']:.2f} a month.",
            "### What was counted\n\n" + _counted(figures),
            "### Steps a CPU second\n\n" + _speeds(figures["a_cpu_second"]),
            "### All at nine\n\n" + _nine(figures["nine"]),
            "### With others\n\n" + _others(figures["others"]),
        ]
    )


def _months(months: Mapping[str, Figures]) -> str:
    names = (ALONE, AMONG, "scheduler", "free")
    rows = [
        (how, f"{told['runs']:,.0f}", *(_cents(told[name]) for name in names), f"{told[AMONG] / told['scheduler']:.2f}")
        for how, told in months.items()
    ]
    scheduler = "EventBridge Scheduler, $"
    headings = ("a schedule", "runs", "Dueline alone, $", "Dueline among many, $", scheduler)
    return table((*headings, "… within its free 14 million, $", "among many, to EventBridge Scheduler's"), rows)


def _cents(dollars: float) -> str:
    """
    >>> _cents(0.0432), _cents(0.000123)
    ('0.0432', '0.000123')
    """
    return f"{dollars:.3g}" if dollars >= 0.001 else f"{dollars:.6f}"


def _counted(figures: Figures) -> str:
    steps = [
        (f"the planner's step of {how} schedules, {many} at once", step, figures["runs_a_step"][how])
        for name, step in figures["steps"].items()
        for how, _, many in [name.partition("|")]
    ]
    ticks = [(f"tick, {int(jobs):,} jobs", step, "") for jobs, step in figures["ticks"].items()]
    watch = (f"the hourly watch, {figures['watch']['jobs']:,} schedules", figures["watch"], "")
    rows = [(what, runs, *_numbers(step)) for what, step, runs in (*steps, *ticks, watch)]
    return table(("step", "runs a schedule", "requests", "write units", "read units", "B logged"), rows)


def _numbers(step: Mapping[str, Any]) -> tuple[str, ...]:
    calls = ", ".join(f"{times:,} {operation}" for operation, times in step["calls"].items())
    return calls, f"{step['writes']:g}", f"{step['reads']:g}", str(step["logged"])


def _speeds(speeds: Mapping[str, Figures]) -> str:
    rows = [
        (how, f"{told['planner']:,.0f}", f"{told['boto3']:,.0f}", f"{told['ratio']:.2f}")
        for how, told in speeds.items()
    ]
    return table(("schedules, ten steps at once", "the planner", "its bare boto3 calls", "of them"), rows)


def _nine(nine: Figures) -> str:
    ahead = nine["ahead"]
    made = (
        f"Of {nine['schedules']:,} daily schedules, the runs are made {ahead['most'] / 60:.1f} to"
        f" {ahead['least'] / 60:.1f} minutes before they are due."
    )
    rows = [
        (
            f"{each['partitions']}",
            *(f"{each['lateness'][name]:.1f} s" for name in ("p50", "p99", "max")),
            f"{100 * each['on_time']:.2f} %",
            *(each[name] for name in ("lost", "repeated", "early")),
        )
        for each in nine["herds"]
    ]
    headings = ("partitions", "lateness p50", "p99", "max", "within 60 s", "lost", "repeated", "early")
    return f"{made}\n\n{table(headings, rows)}"


def _others(others: Mapping[str, Mapping[str, Figures]]) -> str:
    none, many = others.values()
    _, most = others
    rows = [(name, _calls(none[name]), _calls(many[name])) for name in none]
    return table(("calls of the table, and their rows", "no others", f"{int(most):,} others"), rows)


def _calls(told: Figures) -> str:
    calls = ", ".join(f"{times} {name}" for name, times in told["calls"].items())
    return f"{calls}: {told['rows']} rows"
