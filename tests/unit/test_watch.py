"""How a worker is watched: its log, its metrics and its health."""

import errno
import io
import json
import logging
import re
import socket
import sys
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dueline.worker import log as log_module
from dueline.worker.delivery import Event, EventKind
from dueline.worker.log import log, logger
from dueline.worker.prometheus import HEALTHY_SECONDS, Metrics, served
from tests.waiting import HANG_SECONDS

OF_QUEUES = {"emails": ["digest", "welcome"], "invoices": []}

LOUD = {EventKind.RETRIED, EventKind.FAILED, EventKind.LOST, EventKind.TROUBLE}
QUIET = {EventKind.RECEIVED, EventKind.STARTED, EventKind.SKIPPED, EventKind.RETURNED}
# What Powertools says of every line.
OF_EVERY_LINE = {"level", "location", "message", "timestamp", "service"}


@pytest.fixture
def lines(monkeypatch):
    """The lines that are logged, those of DEBUG too."""
    stream = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", stream)
    log_module.write_as("json")
    before = logger.log_level
    logger.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.setLevel(before)


# The log


def fields_of(line):
    """Return what a line has besides what every line has."""
    return {name: line[name] for name in line.keys() - OF_EVERY_LINE}


def test_events_have_their_log_levels(lines):
    for kind in EventKind:
        log(Event(kind=kind, queue="emails", job="id", attempt=2))
    assert [line["message"] for line in lines()] == list(EventKind)
    assert {line["message"] for line in lines() if line["level"] == "WARNING"} == LOUD
    assert {line["message"] for line in lines() if line["level"] == "INFO"} == set(EventKind) - LOUD - QUIET
    assert fields_of(lines()[0]) == {"queue": "emails", "job": "id", "attempt": 2}


def test_all_that_is_known_is_logged_zeros_too(lines):
    every = {"job": "id", "attempt": 1, "lateness": 0.25, "duration": 0.5}
    every |= {"delay": 30, "error": "E", "reason": "a\nb"}
    for reported in (every, {"lateness": 0.0, "delay": 0}, {"reason": "throttled"}, {"kinds": ["digest", "welcome"]}):
        log(Event(kind=EventKind.RETRIED, queue="emails", **reported))
        assert fields_of(lines()[-1]) == {"queue": "emails", **reported}


@pytest.fixture
def screen(monkeypatch, lines):
    """Sets what standard output is, and what the environment has; returns the text that is logged then."""

    def show(*events, form=None, is_terminal=True, **environment):
        for name in ("NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: is_terminal))
        monkeypatch.setattr(logger.registered_handler, "stream", stream)
        log_module.write_as(form)
        for event in events:
            log(event)
        return stream.getvalue()

    yield show
    log_module.write_as("json")


FAILED = Event(
    kind=EventKind.FAILED,
    queue="emails",
    job="id",
    job_kind="welcome",
    attempt=2,
    duration=0.12345,
    error="KeyError",
    reason="'na\x1bme'",
    stack="Traceback:\n  in send\x1b[2J",
)
FAILED_AS_TEXT = """\
failed    queue=emails job=id kind=welcome attempt=2 duration=0.123 KeyError: 'na\\x1bme'
    Traceback:
      in send\\x1b[2J
"""


def test_terminal_gets_readable_lines(screen):
    text = screen(FAILED, NO_COLOR="1")
    assert re.fullmatch(r"\d\d:\d\d:\d\d", text[:8])
    assert text[9:] == FAILED_AS_TEXT


def test_lines_have_colours_in_a_terminal_alone(screen):
    assert "\x1b[31mfailed   \x1b[0m" in screen(FAILED)
    for plain in (screen(FAILED, NO_COLOR="1"), screen(FAILED, TERM="dumb")):
        assert "\x1b" not in plain
    assert "\x1b" not in screen(FAILED, form="text", is_terminal=False)
    assert "\x1b" in screen(FAILED, NO_COLOR="")


def test_all_else_gets_json(screen):
    for text in (screen(FAILED, is_terminal=False), screen(FAILED, form="json")):
        line = json.loads(text)
        assert (line["message"], line["stack"]) == ("failed", "Traceback:\n  in send\x1b[2J")


# The metrics


def read(text, *, label="queue"):
    """Return what Prometheus reads, by name and a label; of a histogram, its count and sum."""
    result = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        (sample.name.removeprefix("dueline_"), sample.labels[label]): sample.value
        for sample in result
        if not sample.name.endswith(("_bucket", "_created"))
    }


def test_kinds_without_a_handler_are_counted_as_other():
    """Callers may name any number of kinds, and Prometheus keeps each label for ever."""
    metrics = Metrics()
    metrics(Event(kind=EventKind.OPENED, queue="emails", kinds=("welcome",)))
    for kind in ("", "welcome", "digest", "x-1", "x-2"):
        metrics(Event(kind=EventKind.FAILED, queue="emails", job_kind=kind))
    counted = read(generate_latest(metrics.registry).decode(), label="kind")
    assert counted == {("failed_total", ""): 1, ("failed_total", "other"): 3, ("failed_total", "welcome"): 1}


def test_events_lateness_and_duration_are_measured_by_queue():
    metrics = Metrics()
    metrics(Event(kind=EventKind.TROUBLE, queue="emails"))
    for queue, lateness, duration in (("emails", 0.5, 2.0), ("emails", 1.0, 4.0), ("invoices", 0.0, 0.0)):
        metrics(Event(kind=EventKind.STARTED, queue=queue, lateness=lateness))
        metrics(Event(kind=EventKind.SUCCEEDED, queue=queue, lateness=lateness, duration=duration))
    assert read(generate_latest(metrics.registry).decode()) == {
        ("trouble_total", "emails"): 1,
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


# The health


def http_get(port, path):
    """GET from this machine; return the status, the type and the text of the answer."""
    try:
        answer = build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}{path}", timeout=HANG_SECONDS)
    except HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def serving(port=0, metrics=None, **ages):
    """Serve the metrics and the health of a worker, by default of one that is well."""
    return served(port, lambda: ages, metrics=metrics or Metrics())


def test_prometheus_is_answered():
    metrics = Metrics()
    metrics(Event(kind=EventKind.SUCCEEDED, queue="emails"))
    with serving(metrics=metrics) as port:
        status, type, text = http_get(port, "/metrics")
    assert (status, type.split(";")[0]) == (200, "text/plain")
    assert read(text) == {("succeeded_total", "emails"): 1}


@pytest.mark.parametrize(
    ("age", "status", "hung"), [(HEALTHY_SECONDS, 200, []), (HEALTHY_SECONDS + 1, 503, ["invoices"])]
)
def test_health_names_the_queues_that_hang(age, status, hung):
    ages, metrics = {"emails": 0.5, "invoices": age}, Metrics()
    metrics(Event(kind=EventKind.OPENED, queue="emails", kinds=("digest", "welcome")))
    with serving(metrics=metrics, **ages) as port:
        answer = http_get(port, "/health")
    assert answer[:2] == (status, "application/json")
    expected = {"healthy": not hung, "hung": hung, "seconds_since_poll": ages, "kinds": OF_QUEUES}
    assert json.loads(answer[2]) == expected


@pytest.mark.parametrize("path", ["/", "/healthy", "/health/", "/metrics/x", "/favicon.ico"])
def test_other_paths_are_not_found(path):
    with serving() as port:
        status, _, text = http_get(port, path)
    assert (status, "There are /health and /metrics." in text) == (404, True)


def test_slow_client_of_health_delays_no_other():
    with serving() as port, socket.create_connection(("127.0.0.1", port)):
        assert http_get(port, "/health?probe=1")[0] == 200


def test_a_port_that_is_taken_is_named():
    with serving() as used_port:
        reported = rf"port {used_port} is not to be had for health and metrics: Address already in use"
        with pytest.raises(OSError, match=reported) as caught, serving(used_port):
            pass
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize("port", [-1, 65_536])
def test_impossible_port_is_named(port):
    with pytest.raises(ValueError, match=f"port is {port}: it must be from 0"), serving(port):
        pass
