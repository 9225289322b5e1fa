"""What the console reaches of a deployment with the caller's credentials. It is handed in: nothing here is AWS's."""

from collections.abc import Callable
from dataclasses import dataclass

from dueline.client.client import Client
from dueline.operate.figures import Figures
from dueline.operate.redrive import Ends
from dueline.ports import Clock, Spread

_MOMENT_SECONDS = 0.7


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """A deployment: its API, the dead letters of its queues, and its metrics. `spread` asks for several at once.

    What is shown at a glance waits for metrics for a `moment`, in seconds. `dead_letters` raises QueueNotFound,
    DeploymentNotFound, Forbidden or Unavailable.
    """

    client: Client
    dead_letters: Callable[[str], Ends]
    figures: Figures
    clock: Clock
    spread: Spread
    moment: float = _MOMENT_SECONDS
