"""How cold starts are told apart into shares, and what is told of them."""

import json
from dataclasses import replace

import pytest

from bench.cold.measure import figures_of, ratios_of, targets_of
from bench.cold.report import markdown
from bench.cold.shares import OURS, SHARES, by_share, own_milliseconds, share_of
from bench.cold.start import Start, read

PRINTED = """import time: self [us] | cumulative | imported package
import time:       900 |        900 | site
begin
import time:      1000 |       1000 |     botocore.session
import time:       500 |       1500 |   boto3
import time:      2000 |       2000 |   email.parser
import time:     40000 |      43500 | functions.tick
"""
MODULES = {"boto3": 30.0, "pydantic": 5.0, "aws_lambda_powertools": 5.0, "ssl": 10.0, "functions.tick": 30.0}
# One module, of many, in one round.
HELD_UP = MODULES | {"boto3": 900.0}


def a_start(**overrides):
    given = {"wall": 100.0, "cpu": 90.0, "clients": {"dynamodb": 20.0}, "models": ("dynamodb",), "peak": 40.0}
    return Start(**({"loaded": ("boto3", "functions.tick"), "modules": MODULES} | given | overrides))


@pytest.fixture
def starts():
    names = ["ingest", "tick", "api", "planner"]
    each = {name: [a_start(), a_start(wall=400.0, modules=HELD_UP), a_start(wall=120.0)] for name in names}
    compiled = {f"{name} with bytecode": [a_start(cpu=60.0)] * 3 for name in names}
    users = {name: [a_start(clients={})] * 3 for name in ("Client", "Worker")}
    return {"": [a_start(peak=10.0, modules={})] * 3, **each, **compiled, **users}


def test_what_the_interpreter_itself_imports_is_not_counted():
    taken = own_milliseconds(PRINTED)
    assert taken == {"botocore.session": 1, "boto3": 0.5, "email.parser": 2, "functions.tick": 40}


@pytest.mark.parametrize(
    ("module", "share"),
    [
        ("urllib3.poolmanager", "boto3"),
        ("aws_lambda_powertools.logging", "Powertools"),
        ("pydantic_core._pydantic_core", "pydantic"),
        ("functions.api", "ours"),
        ("dueline", "ours"),
        ("duelines", "stdlib"),
        ("ssl", "stdlib"),
    ],
)
def test_every_module_is_somebodys(module, share):
    assert share_of(module) == share


def test_clients_are_made_as_our_modules_are_imported_and_counted_apart():
    told = {"wall": 0.05, "cpu": 0.04, "models": [], "loaded": [], "peak_kilobytes": 2048}
    clients = {"dynamodb": {"wall": 0.02, "cpu": 0.01}, "sqs": {"wall": 0.01, "cpu": 0.005}}
    start = read(told | {"clients": clients}, own_milliseconds(PRINTED), target="functions.tick:handler")
    assert start.clients == {"dynamodb": 10, "sqs": 5}
    shares = by_share(start.modules)
    assert shares == {"boto3": 1.5, "Powertools": 0, "pydantic": 0, "stdlib": 2, "ours": 10}
    assert tuple(shares) == SHARES


def test_figures_are_medians_and_memory_is_above_that_of_an_interpreter(starts):
    tick = figures_of(starts)["functions"]["tick"]
    assert (tick["wall"], tick["cpu"], tick["memory"], tick["compiled"]) == (120, 90, 30, 60)
    assert (tick["clients"], tick["made"], tick["modules"], tick["ours"]) == (20, ["dynamodb"], 2, 1)
    assert tick["shares"] == {"boto3": 30, "Powertools": 5, "pydantic": 5, "stdlib": 10, "ours": 30}


def test_ratios_are_of_starts_side_by_side(starts):
    ratios = ratios_of(figures_of(starts))
    assert ratios["ours of tick"] == 30 / 100
    assert ratios["boto3 of tick"] == 30 / 100
    assert ratios["tick with bytecode"] == round(60 / 90, 4)


def test_each_function_has_its_target(starts):
    slow = dict(MODULES) | {"functions.api": 71.0}
    starts["api"] = [replace(each, modules=slow) for each in starts["api"]]
    met = {target.what: target.is_met for target in targets_of(figures_of(starts))}
    assert met == {
        f"{OURS} of the cold start of {name}": name != "api" for name in ("ingest", "tick", "api", "planner")
    }


def test_the_tables_are_made_of_what_is_stored(starts):
    told = markdown(json.loads(json.dumps(figures_of(starts))))
    assert "| tick | 120 | 90 | 30 | 5 | 5 | 10 | 30 | 20 | 30 | 2 | 1 |" in told
    assert "| tick | dynamodb | 60 |" in told
    assert "| `from dueline import Worker` | 100 | 90 | 30 | 2 | 1 |" in told
    assert "Medians of 3 rounds" in told
