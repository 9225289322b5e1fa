"""Process the jobs of one queue: a message is fetched, prefetched, processed; its claim is kept in flight."""

import threading
from collections.abc import Callable
from functools import partial

from dueline.worker.fetcher import Fetcher
from dueline.worker.handler_runner import HandlerRunner
from dueline.worker.in_flight import InFlight
from dueline.worker.pool import Pool
from dueline.worker.prefetch import Item, Prefetched
from dueline.worker.processor import Processor
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.rate_limiter import RateLimiter
from dueline.worker.refresh import SettingsRefresher
from dueline.worker.watch.event import Event, Kind, Report


class QueueWorker:
    """Starts and stops the threads that process one queue's jobs in this process.

    `wall` returns the time in seconds since 1970.
    """

    def __init__(
        self,
        connection: QueueConnection,
        runner: HandlerRunner,
        *,
        concurrency: int,
        report: Report,
        jitter: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._connection, self._report = connection, report
        self._stopped = threading.Event()
        self._limiter = limiter = RateLimiter(connection, wall=wall, report=report)
        self._in_flight = in_flight = InFlight(connection, report=report)
        self._pool = pool = Pool[Item](concurrency, name=connection.queue, now=connection.clock.monotonic)
        self._prefetched = prefetched = Prefetched(
            connection, pool=pool, limiter=limiter, in_flight=in_flight, report=report
        )
        self._fetcher = Fetcher(
            connection,
            pool=pool,
            limiter=limiter,
            in_flight=in_flight,
            prefetched=prefetched,
            report=report,
            jitter=jitter,
        )
        self._processor = Processor(connection, runner, prefetched=prefetched, in_flight=in_flight, report=report)
        self._refresher = SettingsRefresher(connection, report=report, jitter=jitter)

    def open(self) -> None:
        """Receive nothing yet. Raises Throttled or Unavailable when the queue's pause and rate cannot be read."""
        self._report(Event(kind=Kind.OPENED, queue=self._connection.queue))
        self._limiter.read()

    def start(self) -> None:
        self._pool.start(self._processor.process)
        self._in_flight.start()
        self._fetcher.start()
        self._watch("limits", partial(self._limiter.watch, on_change=self._prefetched.apply_limits))
        self._watch("settings", self._refresher.watch)

    def _watch(self, name: str, watch: Callable[[threading.Event], None]) -> None:
        name = f"{name} {self._connection.queue}"
        threading.Thread(target=watch, args=(self._stopped,), name=name, daemon=True).start()

    def stop(self) -> None:
        """Receive no more, and put back the jobs that have not begun."""
        self._stopped.set()
        self._fetcher.stop()
        self._prefetched.stop()

    @property
    def is_busy(self) -> bool:
        """Whether messages are received, jobs run, or messages are to be acknowledged."""
        return self._fetcher.is_receiving or not (self._pool.is_idle and self._in_flight.is_idle)

    def finish(self) -> bool:
        """Put back the jobs that still run, and send the last acknowledgements; tell whether no job still ran."""
        self._fetcher.join()
        is_done = self._pool.is_idle
        self._in_flight.stop(put_back=not is_done)
        self._pool.stop()
        self._report(Event(kind=Kind.CLOSED, queue=self._connection.queue))
        return is_done

    @property
    def heartbeat(self) -> float:
        """When it last looked for work, on the monotonic clock."""
        return self._fetcher.heartbeat
