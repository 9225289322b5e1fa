"""The HTTP API lets nobody in unasked and says who came."""

import json
from typing import Any

from tests.template.synthesis import Assembly

ROUTES = {
    "GET /queues",
    "GET /queues/{queue}",
    "POST /queues/{queue}/jobs",
    "GET /queues/{queue}/jobs",
    "GET /queues/{queue}/jobs/{id}",
    "PATCH /queues/{queue}/jobs/{id}",
    "DELETE /queues/{queue}/jobs/{id}",
    "POST /queues/{queue}/cancellations",
    "POST /queues/{queue}/uploads",
    "POST /queues/{queue}/pause",
    "POST /queues/{queue}/resume",
    "PUT /queues/{queue}/rate",
    "GET /queues/{queue}/schedules",
    "PUT /queues/{queue}/schedules/{schedule}",
    "GET /queues/{queue}/schedules/{schedule}",
    "DELETE /queues/{queue}/schedules/{schedule}",
    "POST /queues/{queue}/schedules/{schedule}/pause",
    "POST /queues/{queue}/schedules/{schedule}/resume",
    "POST /queues/{queue}/schedules/{schedule}/run",
    "POST /queues/{queue}/schedules/{schedule}/backfill",
    "GET /queues/{queue}/schedules/{schedule}/history",
    "POST /schedules/preview",
}


def _stage(assembly: Assembly) -> dict[str, Any]:
    [stage] = assembly.core.of_type("AWS::ApiGatewayV2::Stage").values()
    return stage


def test_every_route_asks_iam(three: Assembly) -> None:
    routes = three.core.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes} == ROUTES
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}


def test_every_route_reaches_the_function(three: Assembly) -> None:
    [integration] = three.core.of_type("AWS::ApiGatewayV2::Integration").values()
    assert three.core.spelled(integration["IntegrationUri"]) == "lambda:function:dueline-api:live"
    assert (integration["IntegrationType"], integration["PayloadFormatVersion"]) == ("AWS_PROXY", "2.0")


def test_it_is_throttled_as_queues_yaml_says(three: Assembly) -> None:
    stage = _stage(three)
    assert stage["StageName"] == "$default"
    assert stage["AutoDeploy"] is True
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": three.deployment.api_rate,
        "ThrottlingBurstLimit": three.deployment.api_burst,
    }


def test_each_request_is_logged_with_its_caller_to_a_log_group_of_its_own(three: Assembly) -> None:
    settings = _stage(three)["AccessLogSettings"]
    assert three.core.spelled(settings["DestinationArn"]) == "logs:/aws/vendedlogs/dueline-api"
    assert settings["Format"].split() == [
        f"$context.{name}"
        for name in ("requestId", "identity.caller", "httpMethod", "path", "status", "integrationErrorMessage")
    ]


def test_its_id_and_its_url_are_told(three: Assembly) -> None:
    told = _told(three)
    [api] = three.core.of_type("AWS::ApiGatewayV2::Api")
    [bucket] = three.core.of_type("AWS::S3::Bucket")
    url = {"Fn::GetAtt": [api, "ApiEndpoint"]}
    assert told["/dueline/dueline/api-id"] == {"Ref": api}
    assert told["/dueline/dueline/api-url"] == url
    assert told["/dueline/dueline/payloads"] == {"Ref": bucket}
    assert three.core.content["Outputs"]["ApiUrl"]["Value"] == url


def test_its_settings_are_told_to_direct_clients_as_the_function_has_them(three: Assembly) -> None:
    [environment] = [
        function["Environment"]["Variables"]
        for function in three.core.of_type("AWS::Lambda::Function").values()
        if function["FunctionName"] == "dueline-api"
    ]
    settings = json.loads(_written_out(_told(three)["/dueline/dueline/settings"]))
    assert {f"DUELINE_{name.upper()}": str(value) for name, value in settings.items()} == {
        name: _written_out(value) for name, value in environment.items() if name.startswith("DUELINE_")
    }


def _told(three: Assembly) -> dict[str, Any]:
    parameters = three.core.of_type("AWS::SSM::Parameter").values()
    return {parameter["Name"]: parameter["Value"] for parameter in parameters}


def _written_out(value: Any) -> str:
    """Return a value with the names of what is only known when it is deployed."""
    parts = value["Fn::Join"][1] if isinstance(value, dict) else [value]
    return "".join(part if isinstance(part, str) else part["Ref"] for part in parts)
