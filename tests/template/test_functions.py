"""The functions, each with an asset of its own."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dueline.cdk.bundle import PLATFORM, PYTHON
from dueline.config import registry
from dueline.config.environment import ApiSettings, PeriodSettings, Settings, TickSettings, WatchSettings
from tests.template.synthesis import Assembly

NAMES = ("ingest", "tick", "api", "planner", "watch")


def _function(assembly: Assembly, name: str) -> dict[str, Any]:
    return assembly.core.find("AWS::Lambda::Function", assembly.deployment.names.function(name))[1]


def _asset(assembly: Assembly, name: str) -> Path:
    return assembly.directory / f"asset.{_function(assembly, name)['Code']['S3Key'].removesuffix('.zip')}"


@pytest.mark.parametrize("name", NAMES)
def test_asset_has_handler_and_libraries_for_arm(three: Assembly, name: str) -> None:
    """What the function is configured with is in the golden templates."""
    function = _function(three, name)
    assert (function["Runtime"], function["Architectures"]) == (f"python{PYTHON}", ["arm64"])
    assert "aarch64" in PLATFORM
    assert (_asset(three, name) / "dueline" / "functions" / f"{name}.py").is_file()


def test_functions_read_their_environment(three: Assembly) -> None:
    declared = {"deployment": "dueline", **dict(three.deployment)}
    kinds = (Settings, TickSettings, ApiSettings, PeriodSettings, WatchSettings)
    for name, kind in zip(NAMES, kinds, strict=True):
        read = asdict(kind.from_env(_function(three, name)["Environment"]["Variables"]))
        # Those of queues.yaml; names are in the golden templates.
        assert read == {**read, **{field: declared[field] for field in read.keys() & declared.keys()}}
        assert "deployment" in read


def test_functions_are_traced_by_setting(three: Assembly, measured: Assembly) -> None:
    assert {name for name in NAMES if "TracingConfig" in _function(three, name)} == set()
    assert all(_function(measured, name)["TracingConfig"] == {"Mode": "Active"} for name in NAMES)


def test_new_queue_changes_its_readers_only(three: Assembly, one_more: Assembly) -> None:
    def reading(assembly: Assembly) -> set[str]:
        return {name for name in NAMES if (_asset(assembly, name) / "registry.json").exists()}

    changed = {name for name in NAMES if _asset(three, name).name != _asset(one_more, name).name}
    assert changed == reading(three) == reading(one_more) == {"ingest", "tick", "api", "planner", "watch"}


def test_concurrency_is_reserved_by_setting(three: Assembly, thrifty: Assembly) -> None:
    assert {name for name in NAMES if "ReservedConcurrentExecutions" in _function(three, name)} == set()
    reserved = {name: _function(thrifty, name).get("ReservedConcurrentExecutions") for name in NAMES}
    assert reserved == {"ingest": None, "tick": 30, "api": 200, "planner": None, "watch": None}


def test_functions_know_every_queue(three: Assembly) -> None:
    for name in NAMES:
        bundled = registry.load(_asset(three, name) / "registry.json")
        assert list(bundled.queues.values()) == three.deployment.queue_settings()
