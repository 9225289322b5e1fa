"""What checks break in a sandbox, as a contract."""

from contextlib import AbstractContextManager
from typing import Protocol


class Faults(Protocol):
    """What can be broken in a sandbox. Each is broken while its context is open, and whole again after it."""

    def schedule_off(self, queue: str) -> AbstractContextManager[None]:
        """Disable the schedules of a queue's ticks."""
        ...

    def stopped(self, function: str) -> AbstractContextManager[None]:
        """Let no invocation of a function begin."""
        ...

    def table_denied(self, *functions: str) -> AbstractContextManager[None]:
        """Deny functions to write the table of jobs."""
        ...

    def schedules_hidden(self) -> AbstractContextManager[None]:
        """Let the guard of TTL not see which ticks have schedules."""
        ...

    def throttled(self) -> AbstractContextManager[None]:
        """Let the table of jobs take a write a second and no more."""
        ...

    def level_gone(self, queue: str, priority: int) -> AbstractContextManager[None]:
        """Delete the SQS queue of a priority, and all that is in it."""
        ...
