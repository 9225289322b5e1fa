"""The functions, each with an asset of its own."""

from dataclasses import asdict
from typing import Any

from dueline.config.environment import ApiSettings, PeriodSettings, Settings, TickSettings, WatchSettings
from tests.template.synthesis import Assembly

NAMES = ("ingest", "tick", "api", "planner", "watch")


def _function(assembly: Assembly, name: str) -> dict[str, Any]:
    return assembly.core.find("AWS::Lambda::Function", assembly.deployment.names.function(name))[1]


def test_functions_read_their_environment(three: Assembly) -> None:
    declared = {"deployment": "dueline", **dict(three.deployment)}
    kinds = (Settings, TickSettings, ApiSettings, PeriodSettings, WatchSettings)
    for name, kind in zip(NAMES, kinds, strict=True):
        read = asdict(kind.from_env(_function(three, name)["Environment"]["Variables"]))
        # Those of queues.yaml; names are in the golden templates.
        assert read == {**read, **{field: declared[field] for field in read.keys() & declared.keys()}}
        assert "deployment" in read
