"""The HTTP API lets nobody in unasked and says who came."""

import json
from typing import Any

from tests.template.synthesis import ROOT, Assembly


def test_every_route_is_authorized_by_iam(neighbours: Assembly) -> None:
    routes = neighbours.core.of_type("AWS::ApiGatewayV2::Route").values()
    documented = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    expected = {f"{method.upper()} {path}" for path, operations in documented.items() for method in operations}
    assert {route["RouteKey"] for route in routes} == expected
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}


def test_direct_clients_get_the_apis_settings(neighbours: Assembly) -> None:
    environment = neighbours.core.find("AWS::Lambda::Function", "dueline-api")[1]["Environment"]["Variables"]
    settings = json.loads(_written_out(_parameters(neighbours)["/dueline/dueline/settings"]))
    assert {f"DUELINE_{name.upper()}": str(value) for name, value in settings.items()} == {
        name: _written_out(value) for name, value in environment.items() if name.startswith("DUELINE_")
    }


def _parameters(assembly: Assembly) -> dict[str, Any]:
    return {each["Name"]: each["Value"] for each in assembly.core.of_type("AWS::SSM::Parameter").values()}


def _written_out(value: Any) -> str:
    """Return a value with the names of what is only known when it is deployed."""
    parts = value["Fn::Join"][1] if isinstance(value, dict) else [value]
    return "".join(part if isinstance(part, str) else part["Ref"] for part in parts)


def test_hundred_queues_fit_into_the_core(neighbours: Assembly) -> None:
    """Each more queue takes two resources of the core stack's 500, and one for each of its producers elsewhere."""
    resources = neighbours.core.resources
    of_queues = [each for each in neighbours.core.of_type("AWS::Lambda::Alias").values() if each["Name"] != "live"]
    assert len(of_queues) == 2 * len(neighbours.queues)
    assert len(resources) - len(of_queues) + 2 * 100 <= 350
