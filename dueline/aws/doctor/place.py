"""Place: where a deployment is, with a caller's clients of the services there, and what it published of itself."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from dueline.aws import clients
from dueline.aws.faults import of_callers
from dueline.config.names import Names
from dueline.config.registry import settings_from
from dueline.doctor.seen import DeployedQueue, Deployment
from dueline.errors import DeploymentNotFound

if TYPE_CHECKING:
    from boto3 import Session

_LONGEST_REQUEST = timedelta(seconds=15)
# Every other name is made of these two: https://sqs.{region}.{suffix}/{account}/
_REGION_AND_ACCOUNT = re.compile(r"https?://sqs\.([a-z0-9-]+)\..*/(\d{12})/")
# A Date header is cut to them: what was measured in this second counts, too.
_WHOLE_SECONDS = timedelta(seconds=1)
NEEDS = "ssm:GetParametersByPath"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A deployment in an account and region, looked at from the instant `now`, by AWS's clock."""

    deployment: Deployment
    session: "Session"
    queue_urls: str
    now: datetime
    _clients: dict[str, Any] = field(default_factory=dict, init=False)
    _making: Lock = field(default_factory=Lock, init=False)

    @property
    def names(self) -> Names:
        return self.deployment.names

    @cached_property
    def region_and_account(self) -> tuple[str, str]:
        found = _REGION_AND_ACCOUNT.fullmatch(self.queue_urls)
        return (found[1], found[2]) if found else ("", "")

    def client(self, service: str) -> Any:
        """Return the client of a service, the same for all threads: a session makes one at a time."""
        with self._making:
            if service not in self._clients:
                self._clients[service] = clients.of_service(service, self.session, longest=_LONGEST_REQUEST)
            return self._clients[service]

    def queue(self, name: str) -> str:
        """Return the ARN of an SQS queue."""
        region, account = self.region_and_account
        return f"arn:aws:sqs:{region}:{account}:{name}"

    def topic(self, name: str) -> str:
        region, account = self.region_and_account
        return f"arn:aws:sns:{region}:{account}:{name}"


def place_of(name: str, *, session: "Session", now: datetime) -> Place:
    """Return a deployment's place, from its SSM parameters.

    Where SSM's answer does not tell the time, it is `now`. Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    names = Names(name)
    with of_callers(f"finding the deployment {name!r}, which needs the right {NEEDS}"):
        ssm = clients.of_service("ssm", session, longest=_LONGEST_REQUEST)
        pages = list(ssm.get_paginator("get_parameters_by_path").paginate(Path=f"/dueline/{name}", Recursive=True))
        found = {each["Name"]: each["Value"] for page in pages for each in page["Parameters"]}
    if names.settings_parameter not in found:
        raise DeploymentNotFound(f"there is no deployment {name!r} in this account and region")
    settings = json.loads(found[names.settings_parameter])
    return Place(
        deployment=_deployment(names, settings, found),
        session=session,
        queue_urls=settings["queue_urls"],
        now=_told(pages[0]) or now,
    )


def _told(answer: Mapping[str, Any]) -> datetime | None:
    """Return the time that AWS told with an answer: a caller's clock may be hours off, and botocore makes up for it."""
    date = answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date")
    return parsedate_to_datetime(date) + _WHOLE_SECONDS if date else None


def _deployment(names: Names, settings: Mapping[str, Any], found: Mapping[str, str]) -> Deployment:
    schemas = json.loads(found.get(names.schema_parameter, "{}"))
    prefix = f"{names.queue_parameters}/"
    queues = {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
    return Deployment(
        names=names,
        lookahead=timedelta(seconds=settings["lookahead"]),
        queues=tuple(_queue(name, json.loads(value)) for name, value in sorted(queues.items())),
        version=schemas.get("version"),
        schema=schemas.get("schema", 0),
        oldest_schema=schemas.get("oldest_schema", 0),
        api_id=found.get(names.api_id_parameter, ""),
    )


def _queue(name: str, parameter: Mapping[str, Any]) -> DeployedQueue:
    told = parameter.get("told", {})
    return DeployedQueue(
        settings=settings_from(parameter, name=name),
        version=told.get("version"),
        expected_rate=told.get("expected_rate"),
    )
