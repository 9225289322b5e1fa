"""What the console reaches of a deployment with the caller's credentials. It is handed in: nothing here is AWS's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dueline.operate.figures import Figures
from dueline.operate.redrive import Ends
from dueline.ports import Clock, Spread


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """A deployment: its API, the dead letters of its queues, and its metrics. `spread` asks for several at once.

    `ask` returns what the API answers to a GET of a path, or raises what went wrong. `dead_letters` raises
    QueueNotFound, DeploymentNotFound, Forbidden or Unavailable.
    """

    ask: Callable[[str], dict[str, Any]]
    dead_letters: Callable[[str], Ends]
    figures: Figures
    clock: Clock
    spread: Spread
