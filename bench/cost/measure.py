"""Measure: count in a process of its own, read what is deployed meanwhile, and bill it."""

import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from subprocess import PIPE, Popen
from typing import Any

from bench.cost.bill import Biller, Capacity
from bench.cost.deployed import deployed, hold
from bench.cost.figures import figures, ratios, targets
from bench.cost.payloads import PACKED, SIZES, json_of, largest_row_bytes
from bench.cost.plan import FULL, HIGH, QUICK, Load
from bench.cost.prices import prices
from bench.cost.step import Step
from bench.cost.ways import Costs
from bench.part import Bench, Measured
from bench.processes import of_aws
from local.emulator import Emulator
from local.template import ROOT
from tests.contract import dynalite


def measure(bench: Bench) -> Measured:
    """Count every step, and bill it."""
    with ThreadPoolExecutor(1) as beside:
        reading = beside.submit(deployed, bench.scratch)
        counted = _counted(bench)
        is_deployed = reading.result()
    hold(is_deployed, Load(rate=HIGH))
    costs = _costs(counted, quick=bench.quick, of=is_deployed)
    told = figures(costs)
    return Measured(figures=told, ratios=ratios(told), targets=targets(told))


def _costs(counted: Mapping[str, Any], *, quick: bool, of: Any) -> Costs:
    known = prices()
    return Costs(
        steps={name: Step(**step) for name, step in counted.items()},
        plan=QUICK if quick else FULL,
        biller=Biller(prices=known, deployed=of, capacity=Capacity.on_demand(known)),
        row_bytes={size.name: largest_row_bytes(json_of(size.payload(1))) for size in (*SIZES, *PACKED)},
    )


def _counted(bench: Bench) -> dict[str, Any]:
    with Emulator(log=bench.scratch / "ministack.log") as emulator, dynalite.running() as dynamodb:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            **of_aws(emulator.endpoint),
            "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
        }
        command = [sys.executable, "-m", "bench.cost", *(["--quick"] if bench.quick else [])]
        with Popen(command, cwd=ROOT, env=environment, stdout=PIPE, text=True) as process:
            return _read(process, bench)


def _read(process: Popen[str], bench: Bench) -> dict[str, Any]:
    """Return what a process counted, telling its progress. Raises RuntimeError where it counted nothing."""
    counted: dict[str, Any] = {}
    for line in process.stdout or ():
        told = json.loads(line)
        counted = told.get("counted", {})
        if "progress" in told:
            bench.progress(*told["progress"])
    if not counted:
        raise RuntimeError("nothing was counted: what went wrong is above")
    return counted
