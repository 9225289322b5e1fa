"""A worker's metrics, as Prometheus reads them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.multiprocess import MultiProcessCollector

from dueline.worker.watch.event import Event, Kind

_COUNTED = {
    Kind.RECEIVED: "Jobs that were received.",
    Kind.SUCCEEDED: "Jobs whose handler returned.",
    Kind.RETRIED: "Jobs that failed and went back into their queue.",
    Kind.FAILED: "Jobs that went into the dead-letter queue.",
    Kind.SKIPPED: "Jobs that were skipped because they were cancelled.",
    Kind.OVERLAPPED: "Jobs that were skipped because another job of their schedule had not ended.",
    Kind.RETURNED: "Jobs that were put back before their handler ran.",
    Kind.LOST: "Jobs whose claim was lost, so that they were not acknowledged.",
    Kind.TROUBLE: "Requests to AWS that failed for good.",
}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
# Where prometheus_client finds it, a process counts in files of this folder, its own metrics and those of its jobs.
SHARED = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """Counts what happens, by queue. Threads may share it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters = {
            kind: Counter(f"dueline_{kind.value}", what, ["queue"], registry=self.registry)
            for kind, what in _COUNTED.items()
        }
        self._lateness = self._histogram("lateness", "Seconds after its due time that a job's handler began, at least.")
        self._duration = self._histogram("duration", "Seconds that a handler took.")

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(f"dueline_{name}_seconds", what, ["queue"], registry=self.registry, buckets=_SECONDS)

    def __call__(self, event: Event) -> None:
        if event.kind in self._counters:
            self._counters[event.kind].labels(event.queue).inc()
        if event.kind is Kind.STARTED and event.lateness is not None:
            self._lateness.labels(event.queue).observe(event.lateness)
        if event.duration is not None:
            self._duration.labels(event.queue).observe(event.duration)


@contextmanager
def shared(environ: Mapping[str, str]) -> Iterator[tuple[CollectorRegistry, dict[str, str]]]:
    """Yield the metrics of all processes that have the yielded environment, those of the dead among them."""
    with TemporaryDirectory(prefix="dueline-metrics-") as scratch:
        folder = environ.get(SHARED) or scratch
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
        yield registry, {SHARED: folder}


def count_on_as(name: str) -> None:
    """Let this process count on, where metrics are shared, from where the last process of that name ended.

    Each process would have files of its own otherwise, and they would be more with each that dies.
    """
    values.ValueClass = values.MultiProcessValue(lambda: name)  # type: ignore[no-untyped-call]
