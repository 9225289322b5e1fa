"""The API, found by a deployment's name, and requested with the caller's own credentials.

Its function is invoked by the alias of a queue, or receives HTTP requests by API Gateway.
"""

import base64
import encodings.idna  # noqa: F401, or a fork during the first call would inherit the lock of its import
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from dueline import __version__
from dueline.aws.botocore_errors import is_missing, is_refused, map_botocore_errors, map_caller_errors, unless
from dueline.aws.clients import NO_REGION
from dueline.client.http import HttpResponse
from dueline.client.models import number_of, text_of
from dueline.config.names import Names
from dueline.config.routes import aliases_for
from dueline.core.threads import PerProcess
from dueline.errors import DeploymentNotFound, Forbidden, QueueNotFound, Unavailable

_CONNECT_SECONDS = 3
# API Gateway gives up on a function after 30 s.
_READ_SECONDS = 31
TRANSPORTS = ("invoke", "http")
_FUNCTION_ARN = re.compile(r"arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]+")


def connect(
    name: str, *, url: str | None, session: boto3.Session | None, lanes: int, transport: str | None = None
) -> "ApiTransport | InvokeTransport":
    """Return the way to a deployment's API, for up to `lanes` requests at once.

    `url` is that of the API, or the ARN of its function. By name, the function is invoked where the deployment has its
    aliases, and what cannot be invoked goes to the gateway; `transport` allows one of the two alone.
    """
    is_function = check_transport(transport, url=url)
    if url is not None and session is None and not is_function:
        return ApiTransport(url, sign=_leave_unsigned, lanes=lanes)
    with map_caller_errors(f"finding the deployment {name!r}"):
        here, names = PerProcess(lambda: session or boto3.Session()), Names(name)
        sign = _leave_unsigned if is_function else signer(here)

        def gateway() -> ApiTransport:
            with map_caller_errors(f"finding the deployment {name!r}"):
                api_url = str(_published(names.api_url_parameter, here()) if url is None else url)
                return _http(api_url, here(), sign=sign, lanes=lanes)

        if transport == "http" or not (url is None or is_function):
            return gateway()
        function = url or _published(names.api_function_parameter, here(), is_needed=transport is not None)
        if function is None:
            return gateway()
        return InvokeTransport(
            function,
            client=PerProcess(lambda: _client("lambda", here(), region=function.split(":")[3], lanes=lanes)),
            uploads=_http("", here(), sign=_leave_unsigned, lanes=lanes),
            gateway=None if is_function or transport else PerProcess(gateway),
        )


def check_transport(transport: str | None, *, url: str | None) -> bool:
    """Return whether a URL is the ARN of a function. Raises ValueError for no URL, or a transport that it has not."""
    try:
        urlsplit(url or "")
    except ValueError as error:
        raise ValueError(f"url is {url!r}: {error}") from None
    if transport not in (None, *TRANSPORTS):
        raise ValueError(f"transport is {transport!r}: it must be one of {', '.join(TRANSPORTS)}, or None")
    is_function = (url or "").startswith("arn:")
    if is_function and not _FUNCTION_ARN.fullmatch(url or ""):
        allowed = "arn:{partition}:lambda:{region}:{account}:function:{name}, without an alias"
        raise ValueError(f"url is {url!r}: the ARN of the API's function is {allowed}")
    if url is not None and transport not in (None, "invoke" if is_function else "http"):
        raise ValueError(f"transport is {transport!r}, but the url is {url!r}")
    return is_function


def _http(url: str, session: boto3.Session, *, sign: Callable[[AWSRequest], None], lanes: int) -> "ApiTransport":
    # boto3 has no public way to read a session's settings.
    inner = session._session
    authorities, config = inner.get_config_variable("ca_bundle"), inner.get_default_client_config()
    return ApiTransport(url, sign=sign, lanes=lanes, authorities=authorities, config=config)


def _published(parameter: str, session: boto3.Session, *, is_needed: bool = True) -> str | None:
    """Return a parameter of the deployment; None where it is not needed and missing, or not to be read."""
    client = _client("ssm", session, region=session.region_name, lanes=1)
    read = partial(client.get_parameter, Name=parameter)
    answer = unless(lambda error: not is_needed and (is_missing(error) or is_refused(error)), read)
    return answer and str(answer["Parameter"]["Value"])


def _client(service: str, session: boto3.Session, *, region: str | None, lanes: int) -> Any:
    """Return a client of a service in a region. It makes each request once: the caller repeats them."""
    make: Any = session.client
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"total_max_attempts": 1},
        max_pool_connections=lanes,
        user_agent=f"dueline/{__version__}",
    )
    return make(service, config=config, region_name=region)


class InvokeTransport:
    """The function of that ARN, invoked once for each request, by an alias of the queue in the path.

    `client` returns Lambda's, and `uploads` sends what goes to S3. An alias that does not exist, or that the caller may
    not invoke, gives way to the next one that has the route, and for good to the `gateway`, if there is one. A request
    without a queue goes by the alias that answered last.
    """

    def __init__(
        self,
        function: str,
        *,
        client: PerProcess[Any],
        uploads: "ApiTransport",
        gateway: PerProcess["ApiTransport"] | None,
    ) -> None:
        self.url = function
        self._client, self._gateway, self._uploads = client, gateway, uploads
        self.put = uploads.put
        self._refused: set[str] = set()
        self._answered: list[str] = []

    def send(
        self,
        method: str,
        path: str,
        body: str | bytes | None,
        *,
        headers: Mapping[str, str],
        queue: str | None = None,
    ) -> HttpResponse:
        """Send one request, once; one without a queue in its path by an alias of `queue`.

        Raises Unavailable when no answer comes or the function fails, Throttled, Forbidden or QueueNotFound.
        """
        request_line, refusal = f"{method} {path}", None
        for alias in aliases_for(path if queue is None else f"/queues/{queue}") or self._answered:
            if alias in self._refused:
                continue
            with map_caller_errors(request_line):
                try:
                    return self._invoke(alias, _event(method, path, body, headers=headers), request_line=request_line)
                except ClientError as error:
                    if not (is_missing(error) or is_refused(error)):
                        raise
                    refusal = error
            if self._gateway is not None:
                self._refused.add(alias)
        if self._gateway is not None:
            return self._gateway().send(method, path, body, headers=headers)
        if refusal is None or is_refused(refusal):
            why = refusal or "its path has no queue, and none was requested before: request something of a queue first"
            raise Forbidden(f"{request_line}: {why}") from refusal
        raise QueueNotFound(f"{request_line}: {refusal}") from refusal

    def close(self) -> None:
        """Close the connections that are kept. The next request opens new ones."""
        for each in (self._uploads, *self._client.made, *(self._gateway.made if self._gateway else ())):
            each.close()

    def _invoke(self, alias: str, event: bytes, *, request_line: str) -> HttpResponse:
        answer = self._client().invoke(FunctionName=f"{self.url}:{alias}", Payload=event)
        self._answered = [alias]
        content = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise Unavailable(f"{request_line}: the function failed: {content.get('errorType')}")
        received, text = answer["ResponseMetadata"]["HTTPHeaders"] | content["headers"], content.get("body") or ""
        return HttpResponse(
            request=request_line,
            status=number_of(content["statusCode"]),
            headers={name.lower(): text_of(value) for name, value in received.items()},
            body=base64.b64decode(text) if content.get("isBase64Encoded") else text.encode(),
        )


def _event(method: str, path: str, body: str | bytes | None, *, headers: Mapping[str, str]) -> bytes:
    """Return a request in the form in which API Gateway sends it to a function: payload 2.0."""
    raw_path, _, query = path.partition("?")
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    event = {
        "version": "2.0",
        "rawPath": raw_path,
        "rawQueryString": query,
        "queryStringParameters": parameters,
        "headers": {"content-type": "application/json", **{name.lower(): value for name, value in headers.items()}},
        "requestContext": {"http": {"method": method, "path": raw_path}},
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": isinstance(body, bytes),
    }
    return json.dumps(event).encode()


def signer(session: Callable[[], boto3.Session]) -> Callable[[AWSRequest], None]:
    """Return what signs with AWS's Signature Version 4, by the credentials of this process's session as they are then.

    Raises DeploymentNotFound without a region, and Forbidden without credentials.
    """
    region = session().region_name
    if region is None:
        raise DeploymentNotFound(NO_REGION)
    credentials = PerProcess(lambda: _credentials_of(session()))
    credentials()

    def sign(request: AWSRequest) -> None:
        with map_caller_errors("signing a request"):
            frozen = credentials().get_frozen_credentials()
        SigV4Auth(frozen, "execute-api", region).add_auth(request)

    return sign


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
        # By the proxies on the way.
        self._sessions = PerProcess(dict[tuple[tuple[str, str], ...], Any])

    def send(
        self,
        method: str,
        path: str,
        body: str | bytes | None,
        *,
        headers: Mapping[str, str],
        queue: str | None = None,
    ) -> HttpResponse:
        """Send one request, once; of `headers` the content type alone is signed. No `queue` makes a difference.

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

    def close(self) -> None:
        """Close the connections that are kept. The next request opens new ones."""
        for each in list(self._sessions().values()):
            each.close()

    def _answer_to(self, request: AWSRequest, *, request_line: str) -> HttpResponse:
        url, proxies = str(request.url), self._config.proxies
        on_the_way = get_environ_proxies(url) if proxies is None else proxies
        with map_botocore_errors(request_line):
            answer = self._session_with(on_the_way).send(request.prepare())
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(request=request_line, status=answer.status_code, headers=headers, body=answer.content)

    def _session_with(self, proxies: Mapping[str, str]) -> Any:
        sessions, way = self._sessions(), tuple(sorted(proxies.items()))
        make: Any = URLLib3Session
        if way not in sessions:
            session = make(
                verify=self._authorities or True,
                proxies=dict(proxies),
                proxies_config=self._config.proxies_config,
                timeout=(_CONNECT_SECONDS, self._read_seconds),
                max_pool_connections=self._lanes,
            )
            # Of two threads that make one at the same time, one is kept, and closed.
            sessions.setdefault(way, session)
        return sessions[way]
