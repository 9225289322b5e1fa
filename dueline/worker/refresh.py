"""Apply a queue's new settings while its workers run."""

import threading
from collections.abc import Callable

from dueline.model.work_settings import LEAST_VISIBILITY_TIMEOUT
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Event, Kind, Report, trouble

# New settings apply within so long. A whole account may read parameters 40 times a second.
LONGEST_SECONDS = 60.0


class SettingsRefresher:
    """Reads a queue's published settings every minute or sooner, and applies them to its connection.

    `jitter`, 0 to 1, spreads the reads of many processes. Settings that cannot be read or applied are reported, and
    change nothing.
    """

    def __init__(self, connection: QueueConnection, *, report: Report, jitter: Callable[[], float]) -> None:
        self._connection, self._report, self._jitter = connection, report, jitter

    def watch(self, stopped: threading.Event) -> None:
        """Read the settings again and again until `stopped`."""
        while not stopped.wait(LONGEST_SECONDS * (1 + self._jitter()) / 2):
            self.read()

    def read(self) -> None:
        """Read the settings once; report what has changed."""
        if self._connection.reload is None:
            return
        try:
            published = self._connection.reload()
            check_settings(published)
        except Exception as fault:
            self._report(trouble(fault, queue=self._connection.queue, what="its published settings were not applied"))
            return
        if changes := self._connection.apply(published):
            self._report(Event(kind=Kind.CHANGED, queue=self._connection.queue, reason=changes))


def check_settings(connection: QueueConnection) -> None:
    """Raise ValueError when a worker cannot process a queue with these settings."""
    hidden = connection.settings.visibility_timeout
    if hidden < LEAST_VISIBILITY_TIMEOUT:
        raise ValueError(
            f"visibility_timeout of queue {connection.queue} is {hidden}: for a worker it must be"
            f" {LEAST_VISIBILITY_TIMEOUT} or more"
        )
