"""The HTTP API behind API Gateway: found by a deployment's name, and spoken to with the caller's own credentials."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from dueline import __version__
from dueline.aws.botocore_errors import map_botocore_errors, map_caller_errors
from dueline.aws.clients import session_per_process
from dueline.client.http import HttpResponse
from dueline.config.names import Names
from dueline.core.threads import PerProcess
from dueline.errors import DeploymentNotFound, Forbidden, Unavailable

_CONNECT_SECONDS = 3
# API Gateway gives up on a function after 30 s.
_READ_SECONDS = 31
# An answer that comes in drips is never late by that: 6 MB take a megabit a second.
_CONTENT_SECONDS = 60
_READ_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOptions:
    """How requests get out: over up to `lanes` connections that are kept.

    `authorities` is a file of those that TLS trusts, by default botocore's own. `config` is what a session is set to;
    without proxies of its own, the environment says which are on the way to a URL.
    """

    lanes: int
    read_seconds: float = _READ_SECONDS
    authorities: str | None = None
    config: Any = field(default_factory=Config)  # of which more is documented than typed

    def to(self, url: str) -> tuple[tuple[str, str], ...]:
        """Return the proxies on the way to a URL, by scheme."""
        proxies = get_environ_proxies(url) if self.config.proxies is None else self.config.proxies
        return tuple(sorted(proxies.items()))

    def session(self, proxies: tuple[tuple[str, str], ...]) -> Any:
        make: Any = URLLib3Session  # like the above
        return make(
            verify=self.authorities or True,
            proxies=dict(proxies),
            proxies_config=self.config.proxies_config,
            timeout=(_CONNECT_SECONDS, self.read_seconds),
            max_pool_connections=self.lanes,
        )


def connect(name: str, *, url: str | None, session: boto3.Session | None, lanes: int) -> "ApiTransport":
    """Return the way to a deployment's API, for up to `lanes` requests at once."""
    if url is not None and session is None:
        return ApiTransport(url, sign=_leave_unsigned, ways=HttpOptions(lanes=lanes))
    with map_caller_errors(f"finding the deployment {name!r}"):
        here = session_per_process(session)
        sign = Signer(here).sign
        api_url = _url_of(name, here()) if url is None else url
        return ApiTransport(api_url, sign=sign, ways=_ways_of(here(), lanes=lanes))


def _ways_of(session: boto3.Session, *, lanes: int) -> HttpOptions:
    # boto3 has no public way to read a session's settings.
    inner = session._session
    config = inner.get_default_client_config() or Config()
    return HttpOptions(lanes=lanes, authorities=inner.get_config_variable("ca_bundle"), config=config)


def _url_of(name: str, session: boto3.Session) -> str:
    client: Any = session.client("ssm")
    return str(client.get_parameter(Name=Names(name).api_url_parameter)["Parameter"]["Value"])


class Signer:
    """Signs requests with AWS's Signature Version 4, by the credentials of this process's session as they are then."""

    def __init__(self, session: Callable[[], boto3.Session]) -> None:
        region = session().region_name
        if region is None:
            raise DeploymentNotFound("no AWS region is set: set AWS_DEFAULT_REGION, or pass a session that has one")
        self._region = region
        self._credentials = PerProcess(lambda: _credentials_of(session()))
        self._credentials()

    def sign(self, request: AWSRequest) -> None:
        with map_caller_errors("signing a request"):
            credentials = self._credentials().get_frozen_credentials()
        SigV4Auth(credentials, "execute-api", self._region).add_auth(request)


def _credentials_of(session: boto3.Session) -> Credentials:
    credentials = session.get_credentials()
    if credentials is None:
        raise Forbidden("no AWS credentials were found: boto3 looks in the environment, ~/.aws and the role")
    return credentials


def _leave_unsigned(_: AWSRequest) -> None:
    """Sign nothing: the gateway of a local run signs what passes through it."""


class ApiTransport:
    """The API at `url`. `sign` adds a request's signature."""

    def __init__(self, url: str, *, sign: Callable[[AWSRequest], None], ways: HttpOptions) -> None:
        self.url = url.rstrip("/")
        self._sign = sign
        self._ways = ways
        self._session = PerProcess(lambda: cache(ways.session))

    def send(self, method: str, path: str, body: str | bytes | None, *, headers: Mapping[str, str]) -> HttpResponse:
        """Send one request, once; of `headers` the content type alone is signed.

        Raises Unavailable when no answer comes.
        """
        added = {name.lower(): value for name, value in headers.items()}
        content_type = added.pop("content-type", "application/json")
        usual = {"content-type": content_type, "user-agent": f"dueline/{__version__}"}
        request = AWSRequest(method=method, url=self.url + path, data=body, headers=usual)
        self._sign(request)
        # Whatever instruments HTTP calls puts a trace context of its own in their place, after the signature.
        for name, value in added.items():
            request.headers[name] = value
        return self._answer_to(request, request_line=f"{method} {path}")

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send one body to a URL that is signed already, once. Raises Unavailable when no answer comes."""
        return self._answer_to(
            AWSRequest(method="PUT", url=url, data=body, headers=dict(headers)), request_line="PUT of a payload"
        )

    def _answer_to(self, request: AWSRequest, *, request_line: str) -> HttpResponse:
        session = self._session()(self._ways.to(str(request.url)))
        prepared = request.prepare()
        prepared.stream_output = True
        with map_botocore_errors(request_line):
            answer = session.send(prepared)
            content = _content_of(answer, request_line=request_line)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(request=request_line, status=answer.status_code, headers=headers, body=content)


def _content_of(answer: AWSResponse, *, request_line: str) -> bytes:
    """Read the content of an answer. Raises Unavailable where it takes too long."""
    raw: Any = answer.raw
    if not hasattr(raw, "read1"):
        # An older urllib3 has none.
        return answer.content
    late, parts = time.monotonic() + _CONTENT_SECONDS, []
    while part := _some_of(raw):
        parts.append(part)
        if time.monotonic() >= late:
            raw.close()
            raise Unavailable(f"{request_line}: the answer was not whole after {_CONTENT_SECONDS} s")
    return b"".join(parts)


def _some_of(raw: Any) -> bytes:
    """Read what came meanwhile, or wait for it. Raises botocore's error for any of urllib3's."""
    try:
        some: bytes = raw.read1(_READ_BYTES)
    except Exception as error:
        raise HTTPClientError(error=error) from error
    return some
