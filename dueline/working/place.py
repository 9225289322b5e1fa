"""What a worker uses of one queue."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dueline.pointer import Pointer
from dueline.ports import Clock, Inbox, Queue, Table
from dueline.working.settings import WorkSettings


class Once(Protocol):
    """Remembers which jobs had their effect."""

    def __call__(self, key: str, effect: Callable[[], None]) -> None:
        """Have an effect, unless it was had under that key before.

        What the effect raises goes through, and then it may be had again. Raises Interrupted when an earlier call began
        and is not known to have ended; Throttled or Unavailable.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A queue as one process works it off: its levels, the most urgent first, and what is around them.

    `read_payload` fetches a payload that is kept elsewhere. `clock` is behind AWS's own for certain.
    """

    settings: WorkSettings
    levels: tuple[Inbox, ...]
    dead_letters: Queue
    table: Table
    read_payload: Callable[[Pointer], str]
    once: Once
    clock: Clock

    @property
    def queue(self) -> str:
        return self.settings.queue.name
