"""Tidying: a sandbox is as whole and as empty after a run as before it, whatever became of the run."""

from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from dueline.aws.sandbox.dead_letters import DeadLetters
from dueline.aws.sandbox.deployments import Deployments
from dueline.aws.sandbox.faults import AwsFaults
from dueline.aws.sandbox.holders import Holders
from dueline.client.client import Client
from dueline.errors import DuelineError
from dueline.verify.checks.rights import POLICIES
from dueline.verify.sandbox import QUEUES
from dueline.verify.trial import NotDeployed


class Tidying:
    """Mends what was broken, by its name, takes roles away, cancels what waits, and empties queues."""

    def __init__(
        self, client: Client, faults: AwsFaults, holders: Holders, dead_letters: DeadLetters, deployments: Deployments
    ) -> None:
        self._client, self._faults, self._holders, self._dead_letters = client, faults, holders, dead_letters
        self._deployments = deployments

    def run(self) -> list[str]:
        """Return what could not be done, and why: each is tried, whatever becomes of the others."""
        steps: dict[str, Callable[[], object]] = {
            "what was broken is not mended": self._faults.mend,
            "roles of policies are left": self._remove_roles,
            "jobs are left": self._cancel_all,
            "partitions are not as many as before": lambda: self._deployments.mend(self._cancel_all),
            "messages are left": self._dead_letters.purge_levels,
            "dead letters are left": self._dead_letters.empty,
        }
        return [f"{what}: {error}" for what, do in steps.items() if (error := _error_of(do))]

    def _remove_roles(self) -> None:
        for policy in POLICIES:
            self._holders.remove(policy)

    def _cancel_all(self) -> None:
        for queue in QUEUES:
            self._client.cancel_many(job.id for job in self._client.jobs(queue))


def _error_of(do: Callable[[], object]) -> str:
    try:
        do()
    except (BotoCoreError, ClientError, DuelineError, NotDeployed, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
