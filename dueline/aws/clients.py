"""boto3 clients and sessions: for callers, who have a session, and for the functions, which have none."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import NoRegionError

from dueline import __version__
from dueline.errors import DeploymentNotFound, Unavailable

if TYPE_CHECKING:
    from boto3 import Session

    from dueline.aws.server_clock import ServiceClock


@dataclass(kw_only=True, slots=True)
class Deadline:
    """When a function's invocation must have answered, on its monotonic clock: there is one at a time in a process."""

    at: float = math.inf
    monotonic: Callable[[], float] = monotonic

    def check(self, longest: timedelta) -> None:
        """Raise Unavailable unless a request that begins now, and takes so long, ends in time."""
        if self.monotonic() + longest.total_seconds() > self.at:
            raise Unavailable("there was no time left for a request of AWS: earlier ones were slow")


DEADLINE = Deadline()

ATTEMPTS = 2
LANES = 10
# Of TCP and of TLS, which a small function takes tenths of a second for as it starts.
_CONNECT_SECONDS = 1.0
# A few ways around the world, and the second that a packet's loss takes.
_CALLERS_CONNECT_SECONDS = 3.0
# AWS closes connections that are idle, and a function that was frozen meanwhile has not heard of it.
_IDLE_SECONDS = 20.0
# As many as a worker may have handlers. What there is no room for is closed after each request.
_CALLERS_CONNECTIONS = 1000
# The most that botocore's standard mode waits before a second attempt.
_BACKOFF_SECONDS = 1.0
# The services that this library alone makes requests of, whose answers set a `service_clock`. AWS checks parameters all
# the same; what operations need besides, botocore checks before.
_TIMED = ("dynamodb", "sqs", "ssm")
_UNCHECKED = (*_TIMED, "s3")


class Clients:
    """One process's clients of a session, each made at its first use. Threads may share them.

    A `service_clock` learns the time from their answers.
    """

    def __init__(
        self, session: "Session | None", *, longest: timedelta, service_clock: "ServiceClock | None" = None
    ) -> None:
        self._session, self._longest, self._service_clock = session, longest, service_clock
        # Ten lanes that find no client would make ten, and each wait for all of them.
        self._making = Lock()
        self._made: dict[str, Any] = {}

    def of(self, service: str) -> Any:
        with self._making:
            if service not in self._made:
                made = client(service, self._session, longest=self._longest)
                if self._service_clock and service in _TIMED:
                    self._service_clock.listen_to(made)
                self._made[service] = made
            return self._made[service]

    def close(self) -> None:
        """Close the connections that are kept. The next request opens new ones."""
        with self._making:
            for made in self._made.values():
                made.close()


def session(*, profile: str | None, region: str | None) -> "Session":
    """Return a session of a profile and in a region, by default those that boto3 finds."""
    return boto3.Session(profile_name=profile, region_name=region)


NO_REGION = "no AWS region is set: set AWS_DEFAULT_REGION, or pass a session that has one"


def client(service: str, session: "Session | None" = None, *, longest: timedelta) -> Any:
    """Return a client of a service whose requests end within `longest`: a caller's, or without a session a function's.

    SQS's messages begin a new chain for Lambda's recursive loop detection, which would otherwise stop the sixteenth job
    in a row that schedules the next one. S3's URLs name the region: for hours, its global endpoint redirects requests
    to a new bucket, which breaks presigned URLs. Raises DeploymentNotFound where no region is set.
    """
    make: Any = (session or boto3).client
    attempt = (longest.total_seconds() - _BACKOFF_SECONDS) / ATTEMPTS
    connect = min(_CONNECT_SECONDS, attempt / 2)
    config = Config(
        connect_timeout=connect if session is None else _CALLERS_CONNECT_SECONDS,
        read_timeout=attempt - connect,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        max_pool_connections=LANES if session is None else _CALLERS_CONNECTIONS,
        # Without one of its own, botocore writes the user agent again, out of a dozen parts, for each request.
        user_agent=f"dueline/{__version__}",
        parameter_validation=service not in _UNCHECKED,
    )
    if service == "s3":
        config = config.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
    try:
        made = make(service, config=config)
    except NoRegionError:
        raise DeploymentNotFound(NO_REGION) from None
    events = made.meta.events
    if session is None:
        _close_idle(made)
        events.register_first("before-call", lambda **_: DEADLINE.check(longest))
    if service == "sqs":
        # None: what else a handler returned would be the answer.
        events.register_last("before-call", lambda params, **_: params["headers"].pop("X-Amzn-Trace-Id", None) and None)
    if service in ("dynamodb", "s3"):
        events.register("after-call", _check_sender)
    return made


def _close_idle(client: Any) -> None:
    """Have a client close its connections before a request where it sent none for so long.

    By the system's clock: the monotonic one may stand still while Lambda has the process frozen. A clock that was set
    costs a connection.
    """
    last, lock = time(), Lock()

    def before_send(**_: Any) -> None:
        nonlocal last
        # One closes them; a thread that comes at the same time finds a new pool.
        with lock:
            if abs(time() - last) > _IDLE_SECONDS:
                client.close()
            last = time()

    client.meta.events.register_first("before-send", before_send)


def _check_sender(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Raise ValueError for a success that is not AWS's, as of a proxy: botocore reads a page as an empty answer."""
    if http_response.status_code < 300 and "RequestId" not in parsed.get("ResponseMetadata", {}):
        raise ValueError("an answer without the id of its request")
