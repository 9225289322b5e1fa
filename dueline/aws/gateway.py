"""The HTTP API behind API Gateway: found by a deployment's name, and spoken to with the caller's own credentials."""

from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from dueline import __version__
from dueline.aws.faults import of_callers, translated
from dueline.config.names import Names
from dueline.errors import DeploymentNotFound, Forbidden
from dueline.http_answer import HttpAnswer

_CONNECT_SECONDS = 3
# API Gateway gives up on a function after 30 s.
_READ_SECONDS = 31


def connect(name: str, *, url: str | None, session: boto3.Session | None, lanes: int) -> "Gateway":
    """Return the way to a deployment's API, for up to `lanes` requests at once."""
    if url is not None and session is None:
        return Gateway(url, sign=_leave_unsigned, authorities=None, lanes=lanes)
    with of_callers(f"finding the deployment {name!r}"):
        own = session or boto3.Session()
        sign = Signer(own).sign
        # boto3 itself tells no one what a session is set to.
        authorities = own._session.get_config_variable("ca_bundle")
        found = _url_of(name, own) if url is None else url
        return Gateway(found, sign=sign, authorities=authorities, lanes=lanes)


def _url_of(name: str, session: boto3.Session) -> str:
    client: Any = session.client("ssm")
    return str(client.get_parameter(Name=Names(name).api_url_parameter)["Parameter"]["Value"])


class Signer:
    """Signs requests with AWS's Signature Version 4, by a session's credentials as they are then."""

    def __init__(self, session: boto3.Session) -> None:
        if session.region_name is None:
            raise DeploymentNotFound("no AWS region is set: set AWS_DEFAULT_REGION, or pass a session that has one")
        credentials = session.get_credentials()
        if credentials is None:
            raise Forbidden("no AWS credentials were found: boto3 looks in the environment, ~/.aws and the role")
        self._region = session.region_name
        self._credentials: Credentials = credentials

    def sign(self, request: AWSRequest) -> None:
        with of_callers("signing a request"):
            credentials = self._credentials.get_frozen_credentials()
        SigV4Auth(credentials, "execute-api", self._region).add_auth(request)


def _leave_unsigned(_: AWSRequest) -> None:
    """Leave it to the door of a local run, which signs what comes through."""


class Gateway:
    """The API at `url`, over up to `lanes` connections that are kept.

    `sign` adds a request's signature. `authorities` is a file of those that TLS trusts, without it botocore's own.
    """

    def __init__(self, url: str, *, sign: Callable[[AWSRequest], None], authorities: str | None, lanes: int) -> None:
        self._url = url.rstrip("/")
        self._sign = sign
        session: Any = URLLib3Session  # of which more is documented than typed
        self._http = session(
            verify=authorities or True,
            proxies=get_environ_proxies(self._url),
            timeout=(_CONNECT_SECONDS, _READ_SECONDS),
            max_pool_connections=lanes,
        )

    def send(self, method: str, path: str, body: str | None, *, headers: Mapping[str, str]) -> HttpAnswer:
        """Send one request, once; `headers` are not signed. Raises Unavailable when no answer comes."""
        usual = {"content-type": "application/json", "user-agent": f"dueline/{__version__}"}
        request = AWSRequest(method=method, url=self._url + path, data=body, headers=usual)
        self._sign(request)
        # Whatever instruments HTTP calls puts a trace context of its own in their place, after the signature.
        for name, value in headers.items():
            request.headers[name] = value
        return self._answer_to(request, asked=f"{method} {path}")

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Send one body to a URL that is signed already, once. Raises Unavailable when no answer comes."""
        return self._answer_to(
            AWSRequest(method="PUT", url=url, data=body, headers=dict(headers)), asked="PUT of a payload"
        )

    def _answer_to(self, request: AWSRequest, *, asked: str) -> HttpAnswer:
        with translated(asked):
            answer = self._http.send(request.prepare())
        told = {name.lower(): value for name, value in answer.headers.items()}
        return HttpAnswer(asked=asked, status=answer.status_code, headers=told, body=answer.content)
