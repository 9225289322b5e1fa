"""What the page shows of queues, in memory."""

import threading
from datetime import timedelta

import pytest

from dueline.config import metrics
from dueline.core import instant
from dueline.core.retry import LANES
from dueline.errors import Forbidden, JobNotFound, Unavailable
from tests.builders import NOW, an_id
from tests.unit.console.memory_console import QUEUE, MemoryConsole, due_in
from tests.waiting import HANG_SECONDS

MINUTE = instant.epoch_ms(NOW) // 1000
OVERVIEW = "/console/overview"
FIGURES = "/console/queues/emails/figures"
AT_A_GLANCE = "/console/figures"
DUE = "/console/queues/emails/due"


def test_overview_has_each_queue_or_its_error():
    console = MemoryConsole()
    console.api.queues = {"emails": Unavailable("no answer"), "invoices": QUEUE}
    failed, other = console.get(OVERVIEW)[1]["queues"]
    assert (failed["queue"], failed["error"]["status"], failed["error"]["detail"]) == ("emails", 503, "no answer")
    assert other == {"queue": "invoices", "partitions": 1, **QUEUE, "error": None}


def test_first_view_reads_each_queue_once_in_parallel():
    """What the first view's time depends on: one request a queue, eight of them under way at once."""
    console, names = MemoryConsole(), [f"queue-{number}" for number in range(20)]
    console.api.queues = dict.fromkeys(names, QUEUE)
    get, together = console.api.get, threading.Barrier(LANES)

    def get_together(path):
        if path in [f"/queues/{name}" for name in names[:LANES]]:
            together.wait(HANG_SECONDS)
        return get(path)

    console.api.get = get_together
    assert [queue["error"] for queue in console.get(OVERVIEW)[1]["queues"]] == [None] * 20
    assert sorted(console.api.gets) == sorted(["/queues", *(f"/queues/{name}" for name in names)])


def test_schedules_of_all_queues_or_their_errors():
    console = MemoryConsole()
    console.api.queues = dict.fromkeys(("emails", "invoices", "webhooks"), QUEUE)
    first = {"schedules": [{"schedule": "a"}], "next": "a", "unreadable": 1}
    console.api.answers = {
        "/queues/emails/schedules?limit=50": first,
        "/queues/emails/schedules?limit=50&next=a": {"schedules": [{"schedule": "b"}], "next": None},
        "/queues/invoices/schedules?limit=50": Unavailable("no answer"),
        "/queues/webhooks/schedules?limit=50": first,
        "/queues/webhooks/schedules?limit=50&next=a": first,
    }
    emails, invoices, webhooks = console.get("/console/schedules")[1]["queues"]
    assert ([each["schedule"] for each in emails["schedules"]], emails["more"], emails["unreadable"]) == (
        ["a", "b"],
        False,
        1,
    )
    assert (invoices["error"]["detail"], "schedules" in invoices) == ("no answer", False)
    assert (len(webhooks["schedules"]), webhooks["more"]) == (10, True)


def test_search_looks_into_each_queue():
    console, id = MemoryConsole(), str(an_id())
    queue, job = id.partition(".")[0], {"id": id, "state": "scheduled"}
    console.api.queues = dict.fromkeys((queue, "a", "b"), QUEUE)
    console.api.answers = {
        f"/queues/{queue}/jobs/{id}": job,
        f"/queues/a/jobs?key={id}": JobNotFound("no job"),
        f"/queues/b/jobs?key={id}": Unavailable("no answer"),
        **{f"/queues/{each}/jobs?key=order+5%2F7": job for each in (queue, "a", "b")},
    }
    by_id = console.get(f"/console/search?text={id}")[1]["queues"]
    assert [(each.get("job"), (each["error"] or {}).get("detail")) for each in by_id] == [
        (job, None),
        (None, None),
        (None, "no answer"),
    ]
    assert [each["job"] for each in console.get("/console/search?text=order%205%2F7")[1]["queues"]] == [job] * 3
    assert console.get("/console/search")[0] == 400


def test_figures_of_all_queues_are_read_at_once():
    console = MemoryConsole()
    console.api.queues["invoices"] = QUEUE
    console.metrics.values["emails", metrics.ON_TIME] = [(5, 90.0), (50, 6.0), (70, 1000.0)]
    status, answer = console.get(AT_A_GLANCE)
    assert (status, console.metrics.reads) == (200, 1)
    assert answer["series"] == {
        "emails": {"lateness": [], "on_time": [[MINUTE - 3000, 6.0], [MINUTE - 300, 90.0]], "delayed": []},
        "invoices": {"lateness": [], "on_time": [], "delayed": []},
    }


@pytest.mark.parametrize(("points", "ttl_off"), [([], None), ([(30, 1.0)], True), ([(30, 1.0), (20, 0.0)], False)])
def test_ttl_off_is_the_last_report_of_its_guard(points, ttl_off):
    console = MemoryConsole()
    console.metrics.values[None, metrics.TTL_OFF] = points
    assert console.get(AT_A_GLANCE)[1]["ttl_off"] is ttl_off


def test_overview_works_without_metrics():
    console = MemoryConsole()
    console.metrics.fault = Forbidden("reading the log: AccessDenied")
    for path in (AT_A_GLANCE, f"{FIGURES}?hours=3"):
        status, problem = console.get(path)
        assert (status, problem["detail"]) == (403, "reading the log: AccessDenied")
    assert console.get(OVERVIEW)[1]["queues"][0]["error"] is None


def test_figures_of_one_queue_have_throughput():
    console = MemoryConsole()
    console.metrics.values["emails", metrics.DISPATCHED] = [(2, 10.0)]
    status, answer = console.get(f"{FIGURES}?hours=1")
    assert (status, answer["from"], answer["to"]) == (200, "2026-11-21T06:05:00.000Z", "2026-11-21T07:05:00.000Z")
    throughput = [[MINUTE - 120, 10.0]]
    assert answer["series"]["emails"] == {"lateness": [], "on_time": [], "delayed": [], "throughput": throughput}


@pytest.mark.parametrize(("hours", "period"), [("1", 60), ("6", 60), ("7", 300), ("24", 300)])
def test_a_longer_span_has_longer_periods(hours, period):
    answer = MemoryConsole().get(f"{FIGURES}?hours={hours}")[1]
    assert answer["period"] == period


@pytest.mark.parametrize("hours", ["0", "-1", "25", "03", "3.5", "", "x", "9" * 5000, "\u0663"])
@pytest.mark.parametrize("path", [FIGURES, DUE])
def test_wrong_hours_are_refused(path, hours):
    status, problem = MemoryConsole().get(f"{path}?hours={hours}")
    assert (status, "it must be a whole number from 1 to 24" in problem["detail"]) == (400, True)


def test_due_jobs_are_counted_by_minute():
    console = MemoryConsole()
    console.api.jobs = [due_in(seconds) for seconds in (-600, -1, 0, 59, 60, 3599, 3600)]
    answer = console.get(f"{DUE}?hours=1")[1]
    assert answer == {
        "from": "2026-11-21T07:05:00.000Z",
        "to": "2026-11-21T08:05:00.000Z",
        "minutes": [[MINUTE, 2], [MINUTE + 60, 1], [MINUTE + 3540, 1]],
        "overdue": 2,
        "counted": 6,
        "more": False,
        "until": "2026-11-21T08:05:00.000Z",
    }


@pytest.mark.parametrize(("there", "more"), [(1000, False), (1001, True), (5000, True)])
def test_a_thousand_due_jobs_are_counted_at_most(there, more):
    console = MemoryConsole()
    console.api.jobs = [due_in(number) for number in range(there)]
    answer = console.get(f"{DUE}?hours=6")[1]
    assert (answer["counted"], answer["more"], console.api.pages) == (1000, more, 11 if more else 10)
    assert answer["until"] == (instant.text(NOW + timedelta(seconds=999)) if more else answer["to"])


def test_counting_ends_after_three_seconds():
    console = MemoryConsole()
    console.api.jobs, page = [due_in(number) for number in range(500)], console.api.page

    def slow(query):
        console.clock.sleep(2)
        return page(query)

    console.api.page = slow
    answer = console.get(f"{DUE}?hours=6")[1]
    assert (answer["counted"], answer["more"], console.api.pages) == (100, True, 2)
