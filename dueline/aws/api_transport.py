"""The HTTP API behind API Gateway: found by a deployment's name, and spoken to with the caller's own credentials."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from dueline import __version__
from dueline.aws.botocore_errors import map_botocore_errors, map_caller_errors
from dueline.aws.clients import session_per_process
from dueline.client.http import HttpResponse
from dueline.config.names import Names
from dueline.core.threads import PerProcess
from dueline.errors import DeploymentNotFound, Forbidden

_CONNECT_SECONDS = 3
# API Gateway gives up on a function after 30 s.
_READ_SECONDS = 31


def connect(name: str, *, url: str | None, session: boto3.Session | None, lanes: int) -> "ApiTransport":
    """Return the way to a deployment's API, for up to `lanes` requests at once."""
    if url is not None and session is None:
        return ApiTransport(url, sign=_leave_unsigned, lanes=lanes)
    with map_caller_errors(f"finding the deployment {name!r}"):
        here = session_per_process(session)
        sign = Signer(here).sign
        api_url = _url_of(name, here()) if url is None else url
        # boto3 has no public way to read a session's settings.
        inner = here()._session
        authorities, config = inner.get_config_variable("ca_bundle"), inner.get_default_client_config()
        return ApiTransport(api_url, sign=sign, lanes=lanes, authorities=authorities, config=config)


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
    """The API at `url`, over up to `lanes` connections that are kept. `sign` adds a request's signature.

    `authorities` is a file of those that TLS trusts, by default botocore's own. `config` is what a session is set to;
    without proxies of its own, the environment says which are on the way to a URL.
    """

    def __init__(
        self,
        url: str,
        *,
        sign: Callable[[AWSRequest], None],
        lanes: int,
        read_seconds: float = _READ_SECONDS,
        authorities: str | None = None,
        config: Config | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._sign, self._lanes, self._read_seconds, self._authorities = sign, lanes, read_seconds, authorities
        self._config: Any = config or Config()  # of which more is documented than typed
        self._sessions = PerProcess(lambda: cache(self._session_with))
        self._open = PerProcess(list[Any])

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

    def fetch(self, url: str) -> HttpResponse:
        """Get what is at a URL that is signed already, once. Raises Unavailable when no answer comes."""
        return self._answer_to(AWSRequest(method="GET", url=url), request_line="GET of a payload")

    def close(self) -> None:
        """Close the connections that are kept. The next request opens new ones."""
        for each in self._open():
            each.close()

    def _answer_to(self, request: AWSRequest, *, request_line: str) -> HttpResponse:
        url, proxies = str(request.url), self._config.proxies
        on_the_way = get_environ_proxies(url) if proxies is None else proxies
        with map_botocore_errors(request_line):
            answer = self._sessions()(tuple(sorted(on_the_way.items()))).send(request.prepare())
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(request=request_line, status=answer.status_code, headers=headers, body=answer.content)

    def _session_with(self, proxies: tuple[tuple[str, str], ...]) -> Any:
        make: Any = URLLib3Session
        made = make(
            verify=self._authorities or True,
            proxies=dict(proxies),
            proxies_config=self._config.proxies_config,
            timeout=(_CONNECT_SECONDS, self._read_seconds),
            max_pool_connections=self._lanes,
        )
        self._open().append(made)
        return made
