"""Measure: count in a process of its own, read what is deployed meanwhile, and bill it."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.apart import measured_apart
from bench.cost.aims import targets
from bench.cost.bill import Biller, Terms
from bench.cost.deployed import deployed, hold
from bench.cost.figures import figures, ratios
from bench.cost.payloads import JSON, SIZES, json_of, largest_row_bytes
from bench.cost.plan import FULL, HIGH, QUICK, Load
from bench.cost.prices import prices
from bench.cost.step import Step
from bench.cost.ways import Costs
from bench.part import Bench, Measured
from bench.processes import of_aws
from local.emulator import Emulator
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
        biller=Biller(prices=known, deployed=of, terms=Terms.on_demand(known)),
        row_bytes={size.name: largest_row_bytes(json_of(size.payload(1))) for size in (*SIZES, JSON)},
    )


def _counted(bench: Bench) -> dict[str, Any]:
    with Emulator(log=bench.scratch / "ministack.log") as emulator, dynalite.running() as dynamodb:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            **of_aws(emulator.endpoint),
            "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
        }
        counted: dict[str, Any] = measured_apart(
            "bench.cost.process",
            *(["--quick"] if bench.quick else []),
            log=bench.scratch / "counting.log",
            progress=bench.progress,
            environment=environment,
        )
        return counted
