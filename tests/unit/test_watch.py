"""How a worker is watched: its log, its metrics and its health."""

import errno
import io
import json
import logging
import socket
from dataclasses import fields
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dueline.worker.watch.event import Event, Kind
from dueline.worker.watch.health import HEALTHY_SECONDS, health_of_all, served
from dueline.worker.watch.log import log, logger
from dueline.worker.watch.metrics import Metrics
from tests.waiting import HANG_SECONDS

LEVELS = {
    Kind.OPENED: "INFO",
    Kind.CLOSED: "INFO",
    Kind.RECEIVED: "DEBUG",
    Kind.STARTED: "DEBUG",
    Kind.SUCCEEDED: "DEBUG",
    Kind.RETRIED: "WARNING",
    Kind.FAILED: "WARNING",
    Kind.SKIPPED: "DEBUG",
    Kind.OVERLAPPED: "INFO",
    Kind.RETURNED: "DEBUG",
    Kind.LOST: "WARNING",
    Kind.TROUBLE: "WARNING",
    Kind.CHANGED: "INFO",
    Kind.DECLARED: "INFO",
    Kind.UNDECLARED: "WARNING",
}
UNCOUNTED = {Kind.OPENED, Kind.CLOSED, Kind.STARTED, Kind.CHANGED, Kind.DECLARED, Kind.UNDECLARED}
# What Powertools says of every line.
OF_EVERY_LINE = {"level", "location", "message", "timestamp", "service"}


@pytest.fixture
def lines(monkeypatch):
    """The lines that are logged, those of DEBUG too."""
    stream = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", stream)
    before = logger.log_level
    logger.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.setLevel(before)


# The log


def test_the_line_of_a_job_that_was_skipped_for_another_is_a_metric_of_its_queue_and_no_other_line_is(lines):
    for kind in (Kind.OVERLAPPED, Kind.SKIPPED):
        log(Event(kind=kind, queue="emails", job="id"), deployment="shop")
    overlapped, skipped = lines()
    (told,) = overlapped["_aws"]["CloudWatchMetrics"]
    assert told == {"Namespace": "Dueline", "Dimensions": [["deployment", "queue"]], "Metrics": [{"Name": "Skipped"}]}
    assert (overlapped["Skipped"], overlapped["deployment"], overlapped["queue"]) == (1, "shop", "emails")
    assert "_aws" not in skipped


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_event_is_logged_at_its_level(lines, kind):
    log(Event(kind=kind, queue="emails", job="id", attempt=2))
    (line,) = lines()
    assert (line["level"], line["message"]) == (LEVELS[kind], kind.value)
    assert {name: line[name] for name in line.keys() - OF_EVERY_LINE} == {"queue": "emails", "job": "id", "attempt": 2}


def test_all_that_is_known_of_an_event_is_logged(lines):
    told = {"job": "id", "attempt": 1, "lateness": 0.25, "lateness_at_most": 0.75, "duration": 0.5}
    told |= {"delay": 30, "error": "E", "reason": "a\nb"}
    log(Event(kind=Kind.RETRIED, queue="emails", **told))
    (line,) = lines()
    assert {name: line[name] for name in line.keys() - OF_EVERY_LINE} == {"queue": "emails", **told}


def test_a_zero_that_was_measured_is_logged_and_what_is_not_known_is_left_out(lines):
    log(Event(kind=Kind.RETRIED, queue="emails", lateness=0.0, delay=0))
    log(Event(kind=Kind.TROUBLE, queue="emails", reason="throttled"))
    measured, trouble = ({name: line[name] for name in line.keys() - OF_EVERY_LINE} for line in lines())
    assert measured == {"queue": "emails", "lateness": 0.0, "delay": 0}
    assert trouble == {"queue": "emails", "reason": "throttled"}


def test_steps_are_left_out_unless_they_are_asked_for(lines):
    logger.setLevel(logging.INFO)
    for kind in Kind:
        log(Event(kind=kind, queue="emails"))
    assert [line["message"] for line in lines()] == [kind for kind in Kind if LEVELS[kind] != "DEBUG"]


def test_an_event_has_no_room_for_a_payload():
    told = {"kind", "queue", "job", "attempt", "lateness", "lateness_at_most", "duration", "delay", "error", "reason"}
    assert {each.name for each in fields(Event)} == told


# The metrics


def samples(metrics):
    """Return what Prometheus reads, by name and queue; of a histogram, its count and sum."""
    return read(generate_latest(metrics.registry).decode())


def read(text):
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        (sample.name.removeprefix("dueline_"), sample.labels["queue"]): sample.value
        for sample in found
        if not sample.name.endswith(("_bucket", "_created"))
    }


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in UNCOUNTED])
def test_events_are_counted_by_queue(kind):
    metrics = Metrics()
    for queue in ("emails", "emails", "invoices"):
        metrics(Event(kind=kind, queue=queue))
    assert samples(metrics) == {(f"{kind.value}_total", "emails"): 2, (f"{kind.value}_total", "invoices"): 1}


def test_lateness_and_duration_are_measured_by_queue_once_a_run():
    metrics = Metrics()
    for queue, lateness, duration in (("emails", 0.5, 2.0), ("emails", 1.0, 4.0), ("invoices", 0.0, 0.0)):
        metrics(Event(kind=Kind.STARTED, queue=queue, lateness=lateness))
        metrics(Event(kind=Kind.SUCCEEDED, queue=queue, lateness=lateness, duration=duration))
    assert samples(metrics) == {
        ("succeeded_total", "emails"): 2,
        ("succeeded_total", "invoices"): 1,
        ("lateness_seconds_count", "emails"): 2,
        ("lateness_seconds_sum", "emails"): 1.5,
        ("lateness_seconds_count", "invoices"): 1,
        ("lateness_seconds_sum", "invoices"): 0,
        ("duration_seconds_count", "emails"): 2,
        ("duration_seconds_sum", "emails"): 6,
        ("duration_seconds_count", "invoices"): 1,
        ("duration_seconds_sum", "invoices"): 0,
    }


def test_two_workers_of_a_process_count_apart():
    first, second = Metrics(), Metrics()
    first(Event(kind=Kind.SUCCEEDED, queue="emails"))
    assert samples(second) == {}


# The health


def asked(port, path):
    """GET from this machine; return the status, the type and the text of the answer."""
    try:
        answer = build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}{path}", timeout=HANG_SECONDS)
    except HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def health(ages, path="/health"):
    with served(0, registry=CollectorRegistry(), ages=lambda: ages) as port:
        status, type, text = asked(port, path)
    assert type == "application/json"
    return status, json.loads(text)


def test_prometheus_is_answered():
    metrics = Metrics()
    metrics(Event(kind=Kind.SUCCEEDED, queue="emails"))
    with served(0, registry=metrics.registry, ages=dict) as port:
        status, type, text = asked(port, "/metrics")
    assert (status, type.split(";")[0]) == (200, "text/plain")
    assert read(text) == {("succeeded_total", "emails"): 1}


def test_a_worker_whose_queues_were_asked_of_late_is_healthy():
    ages = {"emails": 0.5, "invoices": HEALTHY_SECONDS}
    assert health(ages) == (200, {"healthy": True, "hung": [], "seconds_since_asked": ages})


def test_a_worker_that_hangs_at_a_queue_says_at_which():
    ages = {"emails": 0.5, "invoices": HEALTHY_SECONDS + 1}
    assert health(ages) == (503, {"healthy": False, "hung": ["invoices"], "seconds_since_asked": ages})


def test_processes_are_as_healthy_as_the_worst_of_them():
    well, hung = {"emails": 0.5}, {"emails": HEALTHY_SECONDS + 1}
    told = health_of_all([(11, well), (12, hung)])
    assert (told["healthy"], told["hung"], told["seconds_since_asked"]) == (False, ["emails"], hung)
    assert [(each["pid"], each["healthy"]) for each in told["processes"]] == [(11, True), (12, False)]
    assert health_of_all([(11, well), (12, well)])["healthy"] is True
    assert health_of_all([(11, well), (12, None)])["healthy"] is False


@pytest.mark.parametrize("path", ["/", "/healthy", "/health/", "/metrics/x", "/favicon.ico"])
def test_other_paths_are_not_found(path):
    assert health({}, path) == (404, {"paths": ["/health", "/metrics"]})


def test_it_answers_many_at_once_so_that_one_who_is_slow_keeps_nobody_waiting():
    with served(0, registry=CollectorRegistry(), ages=dict) as port, socket.create_connection(("127.0.0.1", port)):
        assert asked(port, "/health")[0] == 200


def test_its_port_is_free_again_afterwards():
    with served(0, registry=CollectorRegistry(), ages=dict) as port:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS)
    with served(port, registry=CollectorRegistry(), ages=dict) as again:
        assert again == port


def test_it_listens_on_every_address_and_asks_no_dns(monkeypatch):
    def asked_dns(*_):
        raise AssertionError("asked for a name")

    monkeypatch.setattr(socket, "getfqdn", asked_dns)
    with (
        served(0, registry=CollectorRegistry(), ages=dict) as port,
        socket.socket() as other,
        pytest.raises(OSError, match="in use"),
    ):
        other.bind(("127.0.0.2", port))


def test_a_port_that_is_taken_is_named():
    with served(0, registry=CollectorRegistry(), ages=dict) as taken:
        told = rf"port {taken} is not to be had for health and metrics: Address already in use"
        with pytest.raises(OSError, match=told) as caught, served(taken, registry=CollectorRegistry(), ages=dict):
            pass
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_is_none_is_refused(port):
    with (
        pytest.raises(ValueError, match=f"port is {port}: it must be from 0"),
        served(port, registry=CollectorRegistry(), ages=dict),
    ):
        pass
