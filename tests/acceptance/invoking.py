"""The API without its gateway, for tests that speak HTTP."""

import json
from typing import Any

import boto3
import httpx
import pytest

from dueline.aws.api_transport import connect

each_way = pytest.mark.parametrize("http", ["gateway", "invoked"], indirect=True)
# What an answer cannot have twice.
_OF_HTTP = ("connection", "content-encoding", "content-length", "transfer-encoding")

# Who an event may claim to be.
_FORGED = {"stage": "$default", "authorizer": {"iam": {"userArn": "arn:aws:iam::123456789012:root"}}}


class AliasTransport(httpx.BaseTransport):
    """Invokes one alias of a function, whatever a request is, as one who knows how the gateway does."""

    def __init__(self, function: str, session: boto3.Session) -> None:
        self._function = function
        make: Any = session.client
        self._lambda = make("lambda")

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        event = {
            "version": "2.0",
            "rawPath": path,
            "headers": dict(request.headers),
            "requestContext": {"http": {"method": request.method, "path": path}, **_FORGED},
            "body": request.read().decode(),
        }
        answer = self._lambda.invoke(FunctionName=self._function, Payload=json.dumps(event).encode())
        assert "FunctionError" not in answer
        content = json.loads(answer["Payload"].read())
        return httpx.Response(content["statusCode"], headers=content["headers"], content=content["body"])


class InvokingTransport(httpx.BaseTransport):
    """Invokes the function of a deployment's API, as the client does."""

    def __init__(self, deployment: str, session: boto3.Session) -> None:
        self._api = connect(deployment, url=None, session=session, lanes=8)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name not in ("host", *_OF_HTTP)}
        path = request.url.raw_path.decode()
        queue = None if path.startswith("/queues/") else "plain"
        answer = self._api.send(request.method, path, request.read() or None, headers=headers, queue=queue)
        received = {name: value for name, value in answer.headers.items() if name not in _OF_HTTP}
        return httpx.Response(answer.status, headers=received, content=answer.body)
