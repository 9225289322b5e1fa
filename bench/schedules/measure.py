"""Measure: count in a process of its own, bill it, and let the rest happen in virtual time."""

import os
from typing import Any

from bench.apart import measured_apart
from bench.cost.bill import Biller, Terms
from bench.cost.deployed import deployed
from bench.cost.prices import prices
from bench.growth.latency import Latency
from bench.part import Bench, Figures, Measured, Target
from bench.processes import of_aws
from bench.schedules import others
from bench.schedules.month import AMONG, RUNS_A_MONTH, Months
from bench.schedules.nine import PARTITIONS, at_nine
from local.emulator import Emulator
from tests.contract import dynalite

AT_NINE, OTHERS, QUICK_AT_NINE, QUICK_OTHERS = 10_000, 100_000, 1_000, 5_000


def measure(bench: Bench) -> Measured:
    counted, known = _counted(bench), prices()
    biller = Biller(prices=known, deployed=deployed(bench.scratch), terms=Terms.on_demand(known))
    steps = counted["steps"]["daily|10"]
    months = Months(counted=counted, biller=biller)
    figures = {
        **counted,
        "months": months.figures(),
        "idle": months.idle(),
        "nine": _nine(bench, cpu=steps["cpu_seconds"] / steps["jobs"]),
        "others": {str(many): others.costs(many) for many in (0, QUICK_OTHERS if bench.quick else OTHERS)},
    }
    return Measured(figures=figures, ratios=ratios(figures), targets=targets(figures))


def _counted(bench: Bench) -> dict[str, Any]:
    with Emulator(log=bench.scratch / "ministack.log") as emulator, dynalite.running() as dynamodb:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            **of_aws(emulator.endpoint),
            "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
        }
        counted: dict[str, Any] = measured_apart(
            "bench.schedules.process",
            *(["--quick"] if bench.quick else []),
            log=bench.scratch / "schedules.log",
            progress=bench.progress,
            environment=environment,
        )
        return counted


def _nine(bench: Bench, *, cpu: float) -> Figures:
    done, of = 0, len(PARTITIONS) + 2

    def tell() -> None:
        nonlocal done
        done += 1
        bench.progress("schedules at nine", done, of)

    schedules = QUICK_AT_NINE if bench.quick else AT_NINE
    return at_nine(schedules, cpu=cpu, latency=Latency(), tell=tell)


def ratios(figures: Figures) -> dict[str, float]:
    months, speeds = figures["months"], figures["a_cpu_second"]
    return {
        **{
            f"$ a month, {how}, to EventBridge Scheduler": months[how][AMONG] / months[how]["scheduler"]
            for how in months
        },
        **{f"steps a CPU second, {how}, to bare boto3 calls": speeds[how]["ratio"] for how in RUNS_A_MONTH},
    }


def targets(figures: Figures) -> tuple[Target, ...]:
    none, many = figures["others"].values()
    grown, most = sum(none[name] != many[name] for name in none), int(list(figures["others"])[-1])
    herds, schedules = figures["nine"]["herds"], f"{figures['nine']['schedules']:,} schedules at nine"
    return (
        Target(what=f"calls for a schedule that {most:,} others change", got=grown, bound=0),
        *(_on_time(schedules, each) for each in herds),
        *(
            Target(what=f"{schedules}: runs that are {name}", got=sum(each[name] for each in herds), bound=0)
            for name in ("lost", "repeated", "early")
        ),
    )


def _on_time(schedules: str, herd: Figures) -> Target:
    number, late = herd["partitions"], herd["lateness"]["max"]
    partitions = f"{number} partition{'s' * (number > 1)}"
    return Target(
        what=f"{schedules}, {partitions}: on time within 60 s",
        got=100 * herd["on_time"],
        bound=99.9,
        at_most=False,
        unit=" %",
        why=f"the ticks of {partitions} send the last one {late:.0f} s late",
    )
