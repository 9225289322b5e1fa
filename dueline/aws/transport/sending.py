"""Sign, send and parse the functions' requests for every job, in place of botocore.

These requests take most of a tick's CPU time, and less of it here: docs/benchmarks.md has the figures. A handler of
botocore's event `before-call` may answer in botocore's place, as its Stubber does; this module is such a handler.
botocore still serializes requests, and decides which error an answer is, and whether and when to retry.
"""

import json
import time
from base64 import b64decode
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from zlib import crc32

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.endpoint import convert_to_response_dict
from botocore.hooks import first_non_none_response
from botocore.parsers import create_parser

from dueline.aws.transport.connections import Connections
from dueline.aws.transport.signature import Credentials, signed

# Those of DynamoDB and SQS. The rest is asked once a tick, a cancel or a look-up.
OPERATIONS = frozenset(("BatchGetItem", "BatchWriteItem", "Query", "SendMessageBatch"))
_REQUEST_ID = "x-amzn-requestid"
Answer = tuple[AWSResponse, dict[str, Any]]


def send_directly(client: Any, connections: Connections, *, operations: Container[str] = OPERATIONS) -> None:
    """Let a boto3 client of DynamoDB or SQS carry out these operations over these connections."""
    # Last: botocore's own handlers add headers, and whoever else may answer in its place, such as a Stubber, is asked.
    client.meta.events.register_last("before-call", _Sender(client.meta.events, connections, operations))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """A call as botocore serialized it; `name` is that of its service and operation, as in event names."""

    model: Any
    params: dict[str, Any]
    request_signer: Any
    context: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.model.service_model.service_id.hyphenize()}.{self.model.name}"

    @property
    def scope(self) -> tuple[str, str]:
        """The service and the region to sign for."""
        signing = self.context.get("signing", {})
        service = signing.get("signing_name", self.model.service_model.signing_name)
        return service, signing.get("region", self.context["client_region"])

    def credentials(self) -> Credentials | None:
        """Return the present credentials to sign with, or None where another kind of signature is needed."""
        signer = self.request_signer.get_auth_instance(*self.scope)
        is_usual = type(signer) is SigV4Auth and self.context["auth_type"] in (None, "v4")
        return signer.credentials if is_usual else None


class _Sender:
    """Answers the calls of a client."""

    def __init__(self, events: Any, connections: Connections, operations: Container[str]) -> None:
        self._events = events
        self._connections = connections
        self._operations = operations

    def __call__(
        self, *, model: Any, params: dict[str, Any], request_signer: Any, context: dict[str, Any], **_: Any
    ) -> Answer | None:
        """Return the answer to a call, or None: then botocore makes it."""
        if model.name not in self._operations:
            return None
        call = _Call(model=model, params=params, request_signer=request_signer, context=context)
        for attempt in count(1):
            credentials = call.credentials()
            if credentials is None:
                return None
            came = self._attempt(call, credentials)
            pause = None if _is_good(came) else self._pause(call, attempt, came)
            if pause is None:
                return _ended(came, retries=attempt - 1)
            time.sleep(pause)
        return None

    def _attempt(self, call: _Call, credentials: Credentials) -> Answer | Exception:
        """Return the answer to one attempt, or its exception."""
        try:
            http = self._send(call, credentials)
            return http, _parsed(convert_to_response_dict(http, call.model), call.model)
        except Exception as error:
            return error

    def _send(self, call: _Call, credentials: Credentials) -> AWSResponse:
        url, body = call.params["url"], call.params["body"]
        place, (service, region) = self._connections.to(url), call.scope
        headers: Any = signed(
            call.params["headers"],
            body=body,
            host=place.host,
            path=place.path,
            credentials=credentials,
            region=region,
            service=service,
            at=time.time(),
        )
        request = AWSPreparedRequest("POST", url, headers, body, False)
        answered = first_non_none_response(self._events.emit(f"before-send.{call.name}", request=request))
        return place.send(request) if answered is None else answered

    def _pause(self, call: _Call, attempt: int, came: Answer | Exception) -> float | None:
        """Return how long to wait before another attempt, as botocore decides; None if there is to be none."""
        answer, fault = (None, came) if isinstance(came, Exception) else (came, None)
        asked = {"operation": call.model, "request_dict": call.params, "endpoint": None}
        judged = self._events.emit(
            f"needs-retry.{call.name}", response=answer, attempts=attempt, caught_exception=fault, **asked
        )
        pause = first_non_none_response(judged)
        return None if pause is False else pause


def _is_good(came: Answer | Exception) -> bool:
    """Return whether botocore need not look at an answer. DynamoDB's answers have a checksum."""
    if isinstance(came, Exception):
        return False
    http, _ = came
    checksum = http.headers.get("x-amz-crc32")
    return http.status_code == 200 and (checksum is None or int(checksum) == crc32(http.content))


def _ended(came: Answer | Exception, *, retries: int) -> Answer:
    if isinstance(came, Exception):
        raise came
    came[1]["ResponseMetadata"]["RetryAttempts"] = retries
    return came


def _parsed(response: Mapping[str, Any], model: Any) -> dict[str, Any]:
    if response["status_code"] == 200:
        body: bytes = response["body"]
        try:
            # A quotation mark within a text is escaped, so that this is a name, or an attribute that is called so.
            parsed: dict[str, Any] = json.loads(body, object_hook=_with_bytes if b'"B"' in body else None)
            return parsed | {"ResponseMetadata": _metadata(response)}
        except ValueError:
            pass
    protocol = model.service_model.resolved_protocol
    botocores: dict[str, Any] = create_parser(protocol).parse(response, model.output_shape)
    return botocores


def _metadata(response: Mapping[str, Any]) -> dict[str, Any]:
    headers = {name.lower(): value for name, value in response["headers"].items()}
    named = {"RequestId": headers[_REQUEST_ID]} if _REQUEST_ID in headers else {}
    return {**named, "HTTPStatusCode": response["status_code"], "HTTPHeaders": headers}


def _with_bytes(parsed: dict[str, Any]) -> dict[str, Any]:
    """Return a DynamoDB attribute of type B with its bytes decoded, and everything else as it is."""
    if len(parsed) == 1 and isinstance(text := parsed.get("B"), str):
        return {"B": b64decode(text)}
    return parsed
