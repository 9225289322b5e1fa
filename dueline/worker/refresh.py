"""Heed what is published of a queue while its workers run."""

import threading
from collections.abc import Callable

from dueline.model.work_settings import LEAST_VISIBILITY_TIMEOUT
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Event, Kind, Report, trouble

# What is deployed is heeded within so long. A parameter is read 40 times a second at most by a whole account.
LONGEST_SECONDS = 60.0


class Refresh:
    """Reads a queue's settings again every minute or sooner, and lets its connection heed them.

    `jitter`, 0 to 1, spreads the reads of many processes. What cannot be read or heeded is told, and changes nothing.
    """

    def __init__(self, connection: QueueConnection, *, report: Report, jitter: Callable[[], float]) -> None:
        self._connection, self._report, self._jitter = connection, report, jitter

    def watch(self, stopped: threading.Event) -> None:
        """Read them again and again until `stopped`."""
        while not stopped.wait(LONGEST_SECONDS * (1 + self._jitter()) / 2):
            self.read()

    def read(self) -> None:
        """Read them, and tell of what has changed."""
        if self._connection.anew is None:
            return
        try:
            published = self._connection.anew()
            check(published)
        except Exception as fault:
            self._report(trouble(fault, queue=self._connection.queue, what="its published settings are not heeded"))
            return
        if news := self._connection.heed(published):
            self._report(Event(kind=Kind.CHANGED, queue=self._connection.queue, reason=news))


def check(connection: QueueConnection) -> None:
    """Raise ValueError when a worker cannot work with the settings of a queue."""
    hidden = connection.settings.visibility_timeout
    if hidden < LEAST_VISIBILITY_TIMEOUT:
        raise ValueError(
            f"visibility_timeout of queue {connection.queue} is {hidden}: for a worker it must be"
            f" {LEAST_VISIBILITY_TIMEOUT} or more"
        )
