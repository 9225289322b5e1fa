"""Place: where a deployment is, with a caller's clients of the services there, and what it published of itself."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import boto3

from dueline.aws import clients
from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.botocore_errors import map_caller_errors
from dueline.aws.settings import reading, settings_in
from dueline.config.names import Names
from dueline.errors import DeploymentNotFound, Unavailable
from dueline.operations.observation import ObservedDeployment

_LONGEST_REQUEST = timedelta(seconds=15)
# A Date header is cut to them: what was measured in this second counts, too.
_WHOLE_SECONDS = timedelta(seconds=1)
NEEDS = "ssm:GetParametersByPath"


@dataclass(frozen=True, kw_only=True)
class DeploymentContext:
    """A deployment in an account and region, looked at from the instant `now`, by AWS's clock."""

    deployment: ObservedDeployment
    session: boto3.Session
    queue_urls: str
    now: datetime

    @property
    def names(self) -> Names:
        return self.deployment.names

    @cached_property
    def aws(self) -> AwsDeployment:
        name = self.names.deployment
        return AwsDeployment(name, longest=_LONGEST_REQUEST, queue_urls=self.queue_urls, session=self.session)

    def client(self, service: str) -> Any:
        """Return the client of a service, the same for all threads."""
        return self.aws.clients.of(service)

    def arn(self, service: str, name: str) -> str:
        account = self.queue_urls.split("/")[-2]
        return f"arn:aws:{service}:{self.session.region_name}:{account}:{name}"


def find_deployment(name: str, *, session: boto3.Session, now: datetime) -> DeploymentContext:
    """Return a deployment's place, from its SSM parameters.

    Where SSM's answer has no time, it is `now`. Raises DeploymentNotFound, Forbidden or Unavailable, also
    for a queue whose parameter cannot be read.
    """
    names = Names(name)
    with map_caller_errors(f"finding the deployment {name!r}, which needs the right {NEEDS}"):
        ssm = clients.client("ssm", session, longest=_LONGEST_REQUEST)
        pages = list(ssm.get_paginator("get_parameters_by_path").paginate(Path=f"/dueline/{name}", Recursive=True))
        values = {each["Name"]: each["Value"] for page in pages for each in page["Parameters"]}
    of_queues = sorted(each for each in values if each.startswith(f"{names.queue_parameters}/"))
    if names.settings_parameter not in values:
        if of_queues:
            gone = f"parameter {names.settings_parameter} is gone, though queues of the deployment are there"
            raise Unavailable(f"finding the deployment {name!r}: {gone}")
        raise DeploymentNotFound(f"there is no deployment {name!r} in this account and region")
    with reading(names.settings_parameter):
        queue_urls = json.loads(values[names.settings_parameter])["queue_urls"]
    queues = tuple(settings_in({"Name": each, "Value": values[each]}) for each in of_queues)
    # By AWS's clock: a caller's may be hours off, and botocore makes up for it.
    date = pages[0]["ResponseMetadata"].get("HTTPHeaders", {}).get("date")
    return DeploymentContext(
        deployment=ObservedDeployment(names=names, queues=queues),
        session=session,
        queue_urls=queue_urls,
        now=parsedate_to_datetime(date) + _WHOLE_SECONDS if date else now,
    )
