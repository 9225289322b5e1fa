"""What a worker reports by, on AWS."""

import logging

from dueline.worker import log, prometheus, worker
from dueline.worker.events import Event, EventKind


def test_report_raises_nothing_and_still_logs(monkeypatch, caplog):
    """Metrics fail where the folder that processes share is gone. A thread that reports must not end of that."""

    class Gone:
        registry = None

        def __call__(self, event):
            raise FileNotFoundError("metrics")

    logged = []
    monkeypatch.setattr(prometheus, "Metrics", Gone)
    monkeypatch.setattr(log, "log", lambda event, *, deployment: logged.append((event.kind, deployment)))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with caplog.at_level(logging.ERROR):
        connected = worker.connect("shop", session=None)
        for _ in range(2):
            connected.report(Event(kind=EventKind.OPENED, queue="emails"))
    connected.close()
    assert logged == [(EventKind.OPENED, "shop")] * 2
    assert [record.exc_info[0] for record in caplog.records] == [FileNotFoundError]
