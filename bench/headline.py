"""The ratios of README: the three that matter."""

from collections.abc import Mapping

from bench.cost.figures import OURS
from bench.cost.ways import total
from bench.lateness import figures as lateness
from bench.results import Result
from bench.tables import table


def headline(results: Mapping[str, Result]) -> str:
    """Return README's table of figures: what a job costs, what others waiting change, and what a tick computes."""
    return table(("", "Dueline", "against"), [_cost(results["cost"]), _growth(results["growth"]), _cpu(results["cpu"])])


def _cost(result: Result) -> tuple[str, str, str]:
    dollars, ratios = total(result.figures["bills"][OURS]), result.measured.ratios
    return (
        "$ per million jobs, all in",
        f"{dollars:.2f}",
        f"**{ratios['of Dynein as coded']:.0%}** of Dynein's protocol as coded,"
        f" {ratios['of Dynein batched']:.0%} of it batched,"
        f" {ratios['of EventBridge Scheduler']:.0%} of EventBridge Scheduler",
    )


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
