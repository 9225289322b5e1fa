"""What a worker uses of one queue."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from dueline.model.pointer import Pointer
from dueline.model.work_settings import WorkSettings
from dueline.ports import Clock, Inbox, Queue, Table


class Once(Protocol):
    """Remembers which jobs had their effect."""

    def __call__(self, key: str, effect: Callable[[], None]) -> None:
        """Have an effect, unless it was had under that key before.

        What the effect raises goes through, and then it may be had again. Raises Interrupted when an earlier call began
        and is not known to have ended; Throttled or Unavailable.
        """


@dataclass(kw_only=True, slots=True)
class QueueConnection:
    """A queue as one process works it off: its levels, the most urgent first, and what is around them.

    `read_payload` fetches a payload that is kept elsewhere. `clock` is behind AWS's own for certain, by `behind()`
    seconds at most. `anew` returns the queue as it is published by now, unless that is never asked. Settings are read
    where they are used, each time.
    """

    settings: WorkSettings
    levels: tuple[Inbox, ...]
    dead_letters: Queue
    table: Table
    read_payload: Callable[[Pointer], str]
    once: Once
    clock: Clock
    behind: Callable[[], float] = lambda: 0.0
    anew: Callable[[], "QueueConnection"] | None = None

    @property
    def queue(self) -> str:
        return self.settings.queue.name

    def heed(self, published: "QueueConnection") -> str:
        """Work with other settings from now on; return what is new in them.

        Further levels are asked too. Those that are gone from the settings are not, but what was received from them is
        acknowledged there.
        """
        before, self.settings = _flat(self.settings), published.settings
        self.levels = (*self.levels, *published.levels[len(self.levels) :])
        told = _flat(self.settings)
        return ", ".join(f"{name} is {told[name]}, was {before[name]}" for name in told if told[name] != before[name])


def _flat(settings: WorkSettings) -> dict[str, Any]:
    told = asdict(settings)
    return {**told.pop("queue"), **told.pop("retry"), **told}
