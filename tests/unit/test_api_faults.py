"""What the HTTP API counts as a fault of AWS, for the alarm on it, and what it does not."""

import json

import pytest

from dueline.config import metrics
from dueline.errors import Throttled, Unavailable
from dueline.memory import MemoryTable
from tests.builders import a_queue, an_id
from tests.called import CONTEXT, call, imported


@pytest.fixture
def api(monkeypatch):
    with imported(monkeypatch, a_queue()) as api:
        yield api


@pytest.fixture
def ask(api, capsys):
    """Asks, and returns the status, the body, and how many faults were counted."""

    def ask(method, path, body=None):
        status, told_body = call(api, method, path, body=None if body is None else json.dumps(body))
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        counted = [line[metrics.API_FAULTS] for line in told if metrics.API_FAULTS in line]
        assert all(line["deployment"] == "d" for line in told if metrics.API_FAULTS in line)
        return status, told_body, sum(sum(each) for each in counted)

    return ask


class Failing(MemoryTable):
    """A table that cannot be asked."""

    def __init__(self, error):
        super().__init__()
        self._error = error

    def read(self, keys):
        raise self._error

    def add(self, row):
        raise self._error


def test_a_reschedule_before_ingest_says_what_it_waits_for_and_is_no_fault_of_aws(ask):
    id = an_id()
    status, told, faults = ask("PATCH", f"/queues/emails/jobs/{id}", {"delay": 9000})
    assert (status, told["code"], faults) == (503, "not_yet", 0)
    assert told["detail"].startswith(f"job {id} is not in the table: it may still be on its way there")


def test_what_aws_fails_is_counted_and_not_quoted(api, ask, monkeypatch):
    failing = Failing(Unavailable("reading: InternalServerError: host 10.0.0.1"))
    monkeypatch.setattr(type(api.RESOURCES), "table", failing)
    status, told, faults = ask("GET", f"/queues/emails/jobs/{an_id()}")
    assert (status, told["code"], faults) == (503, "unavailable", 1)
    assert "10.0.0.1" not in told["detail"]


def test_what_aws_fails_of_many_is_counted_though_the_answer_is_200(api, ask, monkeypatch):
    monkeypatch.setattr(type(api.RESOURCES), "table", Failing(Unavailable("writing: InternalServerError")))
    status, told, faults = ask("POST", "/queues/emails/cancellations", {"ids": [str(an_id())]})
    assert (status, told["jobs"][0]["error"]["status"], faults) == (200, 503, 1)


def test_throttling_and_time_that_is_over_are_no_faults(api, ask, monkeypatch):
    monkeypatch.setattr(type(api.RESOURCES), "table", Failing(Throttled("reading: slow down")))
    status, _, faults = ask("GET", f"/queues/emails/jobs/{an_id()}")
    assert (status, faults) == (429, 0)
    monkeypatch.setattr(CONTEXT, "get_remaining_time_in_millis", lambda: 0)
    _, told, faults = ask("POST", "/queues/emails/cancellations", {"ids": [str(an_id())]})
    assert (told["jobs"][0]["error"]["code"], faults) == ("not_yet", 0)


@pytest.mark.parametrize("path", ["/queues/emails/jobs/7", "/queues/nobody/jobs/7", "/nothing"])
def test_what_callers_do_wrong_is_no_fault(ask, path):
    status, _, faults = ask("GET", path)
    assert (status, faults) == (404, 0)
