"""The functions and their code: one asset for those that know the rules of schedules, one for the others."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench.cold import staged
from dueline import __version__
from dueline.config import registry
from dueline.config.deployment import Deployment
from dueline.config.settings import (
    ApiSettings,
    IngestSettings,
    PlannerSettings,
    StrandSettings,
    TickSettings,
    TtlSettings,
)
from dueline.model.schema import OLDEST_SCHEMA, SCHEMA
from infra.constructs.log_group import RETENTION
from tests.template.synthesis import ROOT, Assembly

NAMES = ("ingest", "tick", "api", "planner", "ttl", "strand")


def _function(assembly: Assembly, name: str) -> dict[str, Any]:
    functions = assembly.core.of_type("AWS::Lambda::Function").values()
    [function] = [one for one in functions if one["FunctionName"] == assembly.deployment.names.function(name)]
    return function


KNOW_RULES = ("api", "planner")


def _asset(assembly: Assembly, *names: str) -> Path:
    [key] = {_function(assembly, name)["Code"]["S3Key"] for name in names or KNOW_RULES}
    return assembly.directory / f"asset.{key.removesuffix('.zip')}"


def _held(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_a_function_runs_python_on_arm_with_aws_own_powertools(three: Assembly, name: str) -> None:
    function = _function(three, name)
    [layer] = function["Layers"]
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["MemorySize"] == 512
    assert function["Handler"] == f"functions.{name}.handler"
    # Of the version that is tested.
    [tested] = re.findall(r"^aws_lambda_powertools==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert layer == f"{{{{resolve:ssm:/aws/service/powertools/python/arm64/python3.13/{tested}}}}}"


def test_there_are_no_functions_but_these(three: Assembly) -> None:
    functions = [one for template in three.templates.values() for one in template.of_type("AWS::Lambda::Function")]
    assert len(functions) == len(NAMES)


def test_functions_read_their_settings_from_their_environment(three: Assembly) -> None:
    deployment = three.deployment
    kinds = (IngestSettings, TickSettings, ApiSettings, PlannerSettings, TtlSettings, StrandSettings)
    read = {
        name: kind.from_env(_function(three, name)["Environment"]["Variables"])
        for name, kind in zip(NAMES, kinds, strict=True)
    }
    urls = read["ingest"].queue_urls
    assert read == {
        "ingest": IngestSettings(deployment="dueline", queue_urls=urls),
        "tick": TickSettings(
            deployment="dueline",
            queue_urls=urls,
            tick_period=deployment.tick_period,
            lookahead=deployment.lookahead,
            lease=deployment.lease,
        ),
        "api": ApiSettings(
            deployment="dueline",
            queue_urls=urls,
            payloads=read["api"].payloads,
            direct_horizon=deployment.direct_horizon,
            lookahead=deployment.lookahead,
        ),
        "planner": PlannerSettings(deployment="dueline", queue_urls=urls, tick_period=deployment.tick_period),
        "ttl": TtlSettings(deployment="dueline", queue_urls=urls, tick_period=deployment.tick_period),
        "strand": StrandSettings(deployment="dueline", queue_urls=urls),
    }


def test_direct_clients_read_the_settings_of_the_api_and_which_schemas_it_takes(three: Assembly) -> None:
    parameters = {each["Name"]: each["Value"] for each in three.core.of_type("AWS::SSM::Parameter").values()}
    told = json.loads(three.core.spelled(parameters["/dueline/dueline/settings"]))
    # Clients of before fail where there is one more.
    assert list(told) == ["deployment", "queue_urls", "payloads", "direct_horizon", "lookahead"]
    schemas = json.loads(parameters["/dueline/dueline/schema"])
    assert schemas == {"schema": SCHEMA, "oldest_schema": OLDEST_SCHEMA, "version": __version__}


def test_the_api_knows_the_bucket_of_payloads_by_its_name(three: Assembly) -> None:
    separator, parts = _function(three, "api")["Environment"]["Variables"]["DUELINE_PAYLOADS"]["Fn::Join"]
    assert separator.join(part if isinstance(part, str) else f"<{part['Ref']}>" for part in parts) == (
        "dueline-payloads-<AWS::AccountId>-<AWS::Region>"
    )


def test_functions_make_queue_urls_of_their_region_and_account(three: Assembly) -> None:
    for name in NAMES:
        url = _function(three, name)["Environment"]["Variables"]["DUELINE_QUEUE_URLS"]
        separator, parts = url["Fn::Join"]
        assert separator.join(part if isinstance(part, str) else f"<{part['Ref']}>" for part in parts) == (
            "https://sqs.<AWS::Region>.<AWS::URLSuffix>/<AWS::AccountId>/"
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_function_says_its_name_in_what_it_logs_and_measures(three: Assembly, name: str) -> None:
    variables = _function(three, name)["Environment"]["Variables"]
    assert {key: value for key, value in variables.items() if key.startswith("POWERTOOLS_")} == {
        "POWERTOOLS_SERVICE_NAME": name,
        "POWERTOOLS_METRICS_NAMESPACE": "Dueline",
    }


def test_a_planner_that_is_late_may_reach_itself_as_often_as_it_takes(three: Assembly) -> None:
    assert _function(three, "planner")["RecursiveLoop"] == "Allow"


def test_functions_are_traced_only_when_queues_yaml_says_so(three: Assembly, traced: Assembly) -> None:
    assert {name for name in NAMES if "TracingConfig" in _function(three, name)} == set()
    assert all(_function(traced, name)["TracingConfig"] == {"Mode": "Active"} for name in NAMES)


def test_the_assets_hold_sources_as_on_disk_and_the_registry_and_one_what_schedules_need(three: Assembly) -> None:
    on_disk = {
        str(path.relative_to(ROOT)) for package in ("dueline", "functions") for path in (ROOT / package).rglob("*.py")
    }
    assert _held(_asset(three, "ingest", "tick")) == on_disk | {"registry.json"}
    libraries = {each for each in _held(_asset(three)) if each.startswith(("cronsim/", "tzdata/"))}
    assert _held(_asset(three)) - libraries == on_disk | {"registry.json"}
    assert {"cronsim/cronsim.py", "tzdata/zoneinfo/Europe/Berlin"} <= libraries
    assert not [each for each in libraries if "__pycache__" in each]


def test_the_asset_has_the_time_zones_that_are_pinned(three: Assembly) -> None:
    [pinned] = re.findall(r"^tzdata==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert f'__version__ = "{pinned}"' in (_asset(three) / "tzdata" / "__init__.py").read_text()


def test_cold_starts_are_measured_with_what_is_deployed(three: Assembly, tmp_path: Path) -> None:
    # Nobody waits for the guards.
    assert set(staged.FUNCTIONS) == {*NAMES} - {"ttl", "strand"}
    assert _held(staged.stage(tmp_path)) == _held(_asset(three))
    for name in staged.FUNCTIONS:
        deployed, measured = _function(three, name)["Environment"]["Variables"], staged.environment(name)
        plain = {key: value for key, value in deployed.items() if key.startswith("POWERTOOLS_")}
        assert deployed.keys() <= measured.keys()
        assert plain.items() <= measured.items()


def test_ticks_and_the_api_reserve_what_queues_yaml_says_and_nothing_of_a_new_account_that_has_little(
    three: Assembly, thrifty: Assembly
) -> None:
    assert {name for name in NAMES if "ReservedConcurrentExecutions" in _function(three, name)} == set()
    reserved = {name: _function(thrifty, name).get("ReservedConcurrentExecutions") for name in NAMES}
    assert reserved == {"ingest": None, "tick": 30, "api": 200, "planner": None, "ttl": None, "strand": None}


def test_functions_know_every_queue(three: Assembly) -> None:
    for asset in (_asset(three), _asset(three, "ingest", "tick")):
        found = registry.load(asset / "registry.json")
        assert list(found.queues.values()) == three.deployment.queue_settings()


def test_every_log_group_has_a_retention_and_every_function_its_log_group(three: Assembly) -> None:
    groups = three.core.of_type("AWS::Logs::LogGroup")
    used = {_function(three, name)["LoggingConfig"]["LogGroup"]["Ref"] for name in NAMES}
    assert {group["RetentionInDays"] for group in groups.values()} == {three.deployment.log_retention_days}
    assert {groups[id]["LogGroupName"] for id in used} == {f"/aws/lambda/dueline-{name}" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_lambda_logs_no_invocation_that_went_well_and_passes_on_what_has_no_level(three: Assembly, name: str) -> None:
    told = _function(three, name)["LoggingConfig"]
    assert (told["LogFormat"], told["SystemLogLevel"], told["ApplicationLogLevel"]) == ("JSON", "WARN", "INFO")


def test_every_log_retention_that_queues_yaml_may_ask_for_is_known() -> None:
    schema = Deployment.model_json_schema()
    assert set(RETENTION) == set(schema["properties"]["log_retention_days"]["enum"])
