"""The least that a step's requests could cost: the same requests, and nothing of ours around them."""

import hashlib
import hmac
import http.client
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from botocore import xform_name

from bench.cpu.loopback import Request
from dueline.ports import Spread

_REGION, _ACCESS_KEY, _SECRET_KEY = "us-east-1", "AKIDEXAMPLE", "secret"
# The services behind the targets.
_SERVICES = {"AmazonSQS": "sqs", "DynamoDB_20120810": "dynamodb", "AmazonSSM": "ssm"}
_SIGNED = "content-type;host;x-amz-date;x-amz-target"


def service_of(target: str) -> str:
    return _SERVICES[target.partition(".")[0]]


def by_boto3(requests: Sequence[Request], clients: dict[str, Any], *, spread: Spread) -> Callable[[], None]:
    """Return what makes the same calls of boto3, their parameters made beforehand, as many at once as ours."""
    calls = [_call(target, body, clients) for target, body in requests]
    return lambda: _drain(spread(lambda call: call[0](**call[1]), calls))


def _call(target: str, body: str, clients: dict[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    return getattr(clients[service_of(target)], xform_name(target.partition(".")[2])), json.loads(body)


def _drain(results: Iterable[object]) -> None:
    for _ in results:
        pass


class ByHttp:
    """Signs and sends requests, their bodies made beforehand, over one connection; reads the answers, and no more."""

    def __init__(self, requests: Sequence[Request], *, port: int) -> None:
        self._requests = [(target, service_of(target), body.encode()) for target, body in requests]
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._host = f"127.0.0.1:{port}"
        self._keys: dict[tuple[str, str], bytes] = {}

    def __call__(self) -> None:
        for target, service, body in self._requests:
            self._connection.request("POST", "/", body, self._headers(target, service, body))
            self._connection.getresponse().read()

    def close(self) -> None:
        self._connection.close()

    def _headers(self, target: str, service: str, body: bytes) -> dict[str, str]:
        """Return the headers of a signed request.

        Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
        """
        at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        day, type = at[:8], "application/x-amz-json-1.0"
        told = f"content-type:{type}\nhost:{self._host}\nx-amz-date:{at}\nx-amz-target:{target}\n"
        canonical = f"POST\n/\n\n{told}\n{_SIGNED}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{day}/{_REGION}/{service}/aws4_request"
        to_sign = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.new(self._key(day, service), to_sign.encode(), "sha256").hexdigest()
        credential = f"Credential={_ACCESS_KEY}/{scope}"
        authorization = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={_SIGNED}, Signature={signature}"
        return {"Content-Type": type, "X-Amz-Date": at, "X-Amz-Target": target, "Authorization": authorization}

    def _key(self, day: str, service: str) -> bytes:
        if (day, service) not in self._keys:
            key = f"AWS4{_SECRET_KEY}".encode()
            for part in (day, _REGION, service, "aws4_request"):
                key = hmac.new(key, part.encode(), "sha256").digest()
            self._keys[day, service] = key
        return self._keys[day, service]
