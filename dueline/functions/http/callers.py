"""Who may do what. The gateway's requests are IAM's to allow; of others, the alias that was invoked alone decides."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from dueline.config.names import LIVE
from dueline.config.routes import ROUTES
from dueline.errors import Forbidden
from dueline.functions.http.requests import check_number_of_fields, validate

# Of an ARN, arn:aws:lambda:{region}:{account}:function:{name}:{alias}.
_PARTS, _ALIAS = 8, 7
_Texts = Annotated[dict[str, str], BeforeValidator(check_number_of_fields)]


class Invocation(BaseModel):
    """What is read of an event that came past the gateway, in the HTTP API's form 2.0. Whatever else it has is false.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """

    model_config = ConfigDict(extra="ignore", strict=True)
    path: str = Field(alias="rawPath")
    method: str = Field(validation_alias=AliasPath("requestContext", "http", "method"))
    query: _Texts | None = Field(alias="queryStringParameters", default=None)
    headers: _Texts | None = None
    body: str | None = None
    is_base64: bool = Field(alias="isBase64Encoded", default=False)


def is_from_gateway(function_arn: str) -> bool:
    return _alias(function_arn) == LIVE


def trusted_event(event: Any, *, function_arn: str) -> dict[str, Any]:
    """Return an event of the same request, made of nothing else; its caller is the alias. Raises InvalidJob."""
    request = validate(Invocation, event)
    return {
        "version": "2.0",
        "rawPath": request.path,
        "queryStringParameters": request.query or {},
        "headers": {name.lower(): value for name, value in (request.headers or {}).items()},
        "body": request.body,
        "isBase64Encoded": request.is_base64,
        "requestContext": {
            "http": {"method": request.method, "path": request.path},
            "stage": "$default",
            "authorizer": {"iam": {"userArn": function_arn}},
        },
    }


def only_what_the_alias_may(app: APIGatewayHttpResolver, call: Callable[..., Any]) -> Any:
    """Let a request through to the route that it has met, unless that is not of the alias's queue and callers.

    Raises Forbidden.
    """
    arn = str(app.lambda_context.invoked_function_arn)
    if is_from_gateway(arn):
        return call(app)
    route = app.context["_route"]
    if _may(arn, route.method, route.path, app.context["_route_args"]):
        return call(app)
    request = f"{app.current_event.http_method} {app.current_event.path}"
    raise Forbidden(f"{request[:200]}: the alias {_alias(arn)!r} does not allow it")


def _may(arn: str, method: str, path: str, arguments: Mapping[str, str]) -> bool:
    route = ROUTES.get(path.replace("<", "{").replace(">", "}"))
    if route is None or method not in route.methods:
        return False
    prefix, hyphen, queue = _alias(arn).partition("-")
    return bool(hyphen) and prefix in route.callers and arguments.get("queue", queue) == queue


def _alias(arn: str) -> str:
    """Return the alias in a function's ARN, "" where there is none: then the function itself was invoked."""
    parts = arn.split(":")
    return parts[_ALIAS] if len(parts) == _PARTS else ""
