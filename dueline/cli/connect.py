"""Where the command line meets AWS."""

from collections.abc import Mapping
from dataclasses import dataclass

from dueline.client.client import Client
from dueline.operate.redrive import Ends
from dueline.retry.patience import Patience

_NAME = "dueline"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Which deployment is meant, and with whose credentials. `url` is that of a local run."""

    name: str = _NAME
    url: str | None = None
    profile: str | None = None
    region: str | None = None

    @property
    def options(self) -> Mapping[str, str | None]:
        """The options that name it to the command line; None is the default."""
        name = None if self.name == _NAME else self.name
        return {"--name": name, "--url": self.url, "--profile": self.profile, "--region": self.region}


def client(target: Target, *, patience: Patience | None = None) -> Client:
    """Return a client of a deployment. Raises DeploymentNotFound, Forbidden or Unavailable."""
    from dueline.aws import clients, faults

    session = None
    if target.profile or target.region:
        with faults.of_callers("finding AWS credentials"):
            session = clients.session(profile=target.profile, region=target.region)
    return Client.connect(target.name, url=target.url, session=session, patience=patience)


def dead_letters(target: Target, queue: str | None) -> Ends:
    """Return the dead letters of a queue, or of none, those that the deployment parked.

    Raises QueueNotFound, DeploymentNotFound, Forbidden or Unavailable.
    """
    from dueline.aws import clients, faults
    from dueline.aws.sqs import dead_letters

    with faults.of_callers("finding AWS credentials"):
        session = clients.session(profile=target.profile, region=target.region)
    if queue is None:
        return dead_letters.of_parked(target.name, session=session)
    return dead_letters.of_queue(target.name, queue, session=session)
