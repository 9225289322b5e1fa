"""The ratios of README: the three that matter."""

from collections.abc import Mapping

from bench.cost.figures import (
    BATCHED,
    CHEAPEST,
    CODED,
    FREE,
    HTTP_IN_CALLS,
    HTTP_SINGLY,
    LINGER,
    LINGERED,
    OF_JSON,
    OURS,
    SCHEDULER,
    per_second,
)
from bench.cost.ways import total
from bench.lateness import figures as lateness
from bench.part import Figures
from bench.results import Result
from bench.tables import table


def headline(results: Mapping[str, Result]) -> str:
    """Return README's figures: what a job costs and where others are cheaper, what others waiting change, and CPU."""
    cost = results["cost"].figures
    rows = [*_cost(cost), _growth(results["growth"]), _cpu(results["cpu"])]
    return f"{table(('', 'Dueline', 'against'), rows)}\n\n{_still_dearer(cost)}"


def _cost(figures: Figures) -> list[tuple[str, str, str]]:
    """Begin with what is paid on the path that README shows first."""
    bills = {name: total(bill) for name, bill in figures["bills"].items()}
    scheduler = f"{bills[SCHEDULER]:.2f} with EventBridge Scheduler"
    return [
        (
            "$ a million jobs, over HTTP, one by one, all in",
            f"**{bills[HTTP_SINGLY]:.2f}**",
            f"**{scheduler}**, {bills[CODED]:.2f} with Dynein's protocol as coded",
        ),
        (f"… {LINGER}", f"{bills[LINGERED]:.2f}", scheduler),
        (
            "… HTTP, 100 a call, or a direct client, in tens",
            f"{bills[HTTP_IN_CALLS]:.2f}, {bills[OURS]:.2f}",
            f"{scheduler}, {bills[BATCHED]:.2f} with Dynein's protocol batched",
        ),
    ]


def _still_dearer(figures: Figures) -> str:
    """Say where EventBridge Scheduler is cheaper."""
    told = []
    for way in (HTTP_SINGLY, HTTP_IN_CALLS, OURS):
        rates = [per_second(rate) for rate, prices in figures["by_rate"].items() if prices[way] > prices[FREE]]
        every = len(rates) == len(figures["by_rate"])
        told += [f"{_named(way)} at {'every rate' if every else ' and '.join(rates)}"] if rates else []
    for way in (OURS, OF_JSON, CHEAPEST):
        waits = [days for days, prices in figures["by_wait"].items() if prices[way] > prices[SCHEDULER]]
        told += [f"{_named(way)} after a wait of {waits[0]} days"] if waits else []
    return f"EventBridge Scheduler, with its 14 million a month free, is cheaper: {'; '.join(told)}."


def _named(way: str) -> str:
    return way.removeprefix("Dueline, ")


def _growth(result: Result) -> tuple[str, str, str]:
    largest, steps = result.figures["sizes"][-1], result.figures["steps"]
    most = max(by_size[largest]["cpu_ms"] / by_size["0"]["cpu_ms"] for by_size in steps.values())
    return (
        "to schedule, cancel, look up or tick",
        f"the same requests, bytes and capacity with {int(largest):,} jobs waiting",
        f"**{most:.2f}** of the CPU with none, at most",
    )


def _cpu(result: Result) -> tuple[str, str, str]:
    tick = result.figures["jobs_a_second"]["tick"]
    against = result.figures["against"]["tick"]
    return (
        "jobs handed over, a CPU second",
        f"{tick['Dueline']:,}",
        f"**{against['Dynein']:.0f} times** those of Dynein's protocol, {against['Dynein batched']:.0f} times batched",
    )


def on_time(result: Result) -> str:
    """Return how late jobs are, in a sentence."""
    plain, worker = (result.figures["contenders"][name][lateness.FLOW] for name in (lateness.PLAIN, lateness.WORKER))
    whole = result.figures["all"]
    return (
        "In real time, with a tick that was missed and one that was killed, a plain SQS consumer has a job"
        f" {plain['p50']:.1f} s after it is due (median; p95 {plain['p95']:.1f} s), the worker after"
        f" {1000 * worker['p50']:.0f} ms; {whole['early']} early, {whole['lost']} lost."
    )
