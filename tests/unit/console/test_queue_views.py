"""What the page shows of queues, in memory."""

import pytest

from dueline.config import metrics
from dueline.core import instant
from dueline.errors import Forbidden
from tests.builders import NOW
from tests.unit.console.memory_console import MemoryConsole
from tests.wire import failing, on

MINUTE = instant.epoch_ms(NOW) // 1000
FIGURES = "/console/queues/emails/figures"
AT_A_GLANCE = "/console/figures"


def test_figures_of_all_queues_are_read_at_once():
    console = MemoryConsole()
    console.queues.append("invoices")
    console.metrics["emails", metrics.ON_TIME] = [(5, 90.0), (50, 6.0), (70, 1000.0)]
    # A second read is an error.
    console.wire.around = on("metrics.read", failing(Forbidden("no")), skip=1)
    status, answer = console.get(AT_A_GLANCE)
    assert status == 200
    assert answer["series"] == {
        "emails": {"lateness": [], "on_time": [[MINUTE - 3000, 6.0], [MINUTE - 300, 90.0]], "delayed": []},
        "invoices": {"lateness": [], "on_time": [], "delayed": []},
    }


@pytest.mark.parametrize(("points", "ttl_off"), [([], None), ([(30, 1.0)], True), ([(30, 1.0), (20, 0.0)], False)])
def test_ttl_off_is_the_last_report_of_its_guard(points, ttl_off):
    console = MemoryConsole()
    console.metrics[None, metrics.TTL_OFF] = points
    assert console.get(AT_A_GLANCE)[1]["ttl_off"] is ttl_off


def test_figures_that_may_not_be_read_are_an_error():
    console = MemoryConsole()
    console.wire.around = on("metrics.read", failing(Forbidden("reading the log: AccessDenied")))
    for path in (AT_A_GLANCE, FIGURES):
        status, problem = console.get(path)
        assert (status, problem["detail"]) == (403, "reading the log: AccessDenied")


def test_figures_of_one_queue_have_throughput():
    console = MemoryConsole()
    console.metrics["emails", metrics.DISPATCHED] = [(2, 10.0)]
    status, answer = console.get(FIGURES)
    assert (status, answer["from"], answer["to"]) == (200, "2026-11-21T01:05:00.000Z", "2026-11-21T07:05:00.000Z")
    throughput = [[MINUTE - 120, 10.0]]
    assert answer["series"]["emails"] == {"lateness": [], "on_time": [], "delayed": [], "throughput": throughput}
