"""What the console needs of a deployment, with the caller's credentials. The command line passes it in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dueline.client.http import HttpResponse
from dueline.core.ports import Clock, ParallelMap
from dueline.operations.observation import Figures
from dueline.operations.redrive import RedriveQueues


class Upstream(Protocol):
    """The deployment's HTTP API, to which requests are forwarded."""

    def send(self, method: str, path: str, body: bytes | None, *, headers: Mapping[str, str]) -> HttpResponse:
        """Send a request, once. Raises Forbidden without credentials, and Unavailable when no answer comes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """A deployment: its API, the dead letters of its queues, and its metrics.

    `get` returns what the API answers to a GET of a path, or raises its error. `dead_letters` raises QueueNotFound,
    DeploymentNotFound, Forbidden or Unavailable. `parallel_map` makes several calls at once.
    """

    get: Callable[[str], dict[str, Any]]
    dead_letters: Callable[[str], RedriveQueues]
    figures: Figures
    clock: Clock
    parallel_map: ParallelMap
