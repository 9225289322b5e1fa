"""What the page asks about queues, in memory."""

from datetime import timedelta

import pytest

from dueline.config import metrics
from dueline.errors import Forbidden, Unavailable
from dueline.model import instant
from tests.builders import NOW
from tests.unit.console.reached import EMPTY, Place, due_in

MINUTE = instant.epoch_ms(NOW) // 1000
OVERVIEW = "/console/overview"
FIGURES = "/console/queues/emails/figures"
AT_A_GLANCE = "/console/figures"
DUE = "/console/queues/emails/due"


# At a glance


def test_each_queue_is_told_as_the_api_tells_of_it():
    place = Place()
    place.api.queues["emails"] = EMPTY | {"scheduled": 1000, "more_scheduled": True, "levels": [{"priority": 1}]}
    told = {"queue": "emails", **place.api.queues["emails"], "error": None}
    assert place.ask(OVERVIEW) == (200, {"queues": [told]})


def test_a_queue_that_fails_is_told_as_such_beside_the_others():
    place = Place()
    place.api.queues = {"emails": Unavailable("no answer"), "invoices": EMPTY}
    failed, other = place.ask(OVERVIEW)[1]["queues"]
    assert (failed["queue"], failed["error"]["status"], failed["error"]["detail"]) == ("emails", 503, "no answer")
    assert (other["queue"], other["error"]) == ("invoices", None)


def test_figures_of_all_queues_are_those_of_an_hour_that_tell_how_they_stand():
    place = Place()
    place.api.queues["invoices"] = EMPTY
    place.metrics.values["emails", metrics.ON_TIME] = [(5, 90.0), (50, 6.0), (70, 1000.0)]
    status, told = place.ask(AT_A_GLANCE)
    assert (status, told["reason"], place.metrics.reads) == (200, None, 1)
    assert told["series"] == {
        "emails": {"lateness": [], "on_time": [[MINUTE - 3000, 6.0], [MINUTE - 300, 90.0]], "delayed": []},
        "invoices": {"lateness": [], "on_time": [], "delayed": []},
    }


def test_that_ttl_is_off_is_told_by_what_its_guard_reported_last():
    place, told = Place(), []
    place.metrics.values["emails", metrics.LATENESS] = [(5, 90.0)]
    for points in ([], [(30, 1.0)], [(30, 1.0), (20, 0.0)]):
        place.metrics.values[None, metrics.TTL_OFF] = points
        told.append(place.ask(AT_A_GLANCE)[1]["ttl_off"])
    assert told == [None, True, False]


def test_without_the_right_to_read_metrics_all_else_is_told_and_beside_it_the_reason():
    place = Place()
    place.metrics.fault = Forbidden("reading metrics from CloudWatch: AccessDenied")
    told = place.ask(AT_A_GLANCE)[1]
    assert (told["series"], told["reason"]) == (None, "reading metrics from CloudWatch: AccessDenied")
    assert place.ask(OVERVIEW)[1]["queues"][0]["error"] is None


# Figures


def test_figures_tell_lateness_throughput_and_how_many_were_on_time():
    place = Place()
    place.metrics.values = {
        ("emails", metrics.LATENESS): [(2, 1.5), (1, 0.0)],
        ("emails", metrics.DISPATCHED): [(2, 10.0)],
        ("emails", metrics.ON_TIME): [(2, 8.0), (1, 4.0)],
        ("emails", metrics.DELAYED): [(3, 5.0), (2, 2.0)],
    }
    status, told = place.ask(f"{FIGURES}?hours=1")
    assert (status, told["period"], told["reason"]) == (200, 60, None)
    assert (told["from"], told["to"]) == ("2026-11-21T06:05:00.000Z", "2026-11-21T07:05:00.000Z")
    assert told["series"]["emails"] == {
        "lateness": [[MINUTE - 120, 1.5], [MINUTE - 60, 0.0]],
        "on_time": [[MINUTE - 120, 8.0], [MINUTE - 60, 4.0]],
        "delayed": [[MINUTE - 180, 5.0], [MINUTE - 120, 2.0]],
        "throughput": [[MINUTE - 120, 10.0]],
    }


def test_without_figures_the_reason_is_told():
    place = Place()
    told = place.ask(f"{FIGURES}?hours=3")[1]
    assert (told["series"], told["reason"]) == (None, "CloudWatch has no metrics of this time")
    place.metrics.fault = Forbidden("AccessDenied")
    assert place.ask(f"{FIGURES}?hours=3")[1]["reason"] == "AccessDenied"


@pytest.mark.parametrize(("hours", "period"), [("1", 60), ("6", 60), ("7", 300), ("24", 300)])
def test_a_longer_time_has_longer_periods(hours, period):
    assert Place().ask(f"{FIGURES}?hours={hours}")[1]["period"] == period


@pytest.mark.parametrize("hours", ["0", "-1", "25", "03", "3.5", "", "x", "9" * 5000, "\u0663"])
@pytest.mark.parametrize("path", [FIGURES, DUE])
def test_hours_that_are_none_are_refused(path, hours):
    status, problem = Place().ask(f"{path}?hours={hours}")
    assert (status, "it must be a whole number from 1 to 24" in problem["detail"]) == (400, True)


# What is due


def test_what_is_due_is_counted_by_minute_beside_what_is_overdue():
    place = Place()
    place.api.jobs = [due_in(seconds) for seconds in (-600, -1, 0, 59, 60, 3599, 3600)]
    told = place.ask(f"{DUE}?hours=1")[1]
    assert told == {
        "from": "2026-11-21T07:05:00.000Z",
        "to": "2026-11-21T08:05:00.000Z",
        "minutes": [[MINUTE, 2], [MINUTE + 60, 1], [MINUTE + 3540, 1]],
        "overdue": 2,
        "counted": 6,
        "more": False,
        "until": "2026-11-21T08:05:00.000Z",
    }


@pytest.mark.parametrize(("there", "more"), [(1000, False), (1001, True), (5000, True)])
def test_beyond_a_thousand_jobs_no_more_are_counted_and_asked_for(there, more):
    place = Place()
    place.api.jobs = [due_in(number) for number in range(there)]
    told = place.ask(f"{DUE}?hours=6")[1]
    assert (told["counted"], told["more"], place.api.pages) == (1000, more, 11 if more else 10)
    assert told["until"] == (instant.text(NOW + timedelta(seconds=999)) if more else told["to"])


def test_counting_ends_after_three_seconds_with_what_it_has():
    place = Place()
    place.api.jobs, ask = [due_in(number) for number in range(500)], place.api.page

    def slow(query):
        place.clock.sleep(2)
        return ask(query)

    place.api.page = slow
    told = place.ask(f"{DUE}?hours=6")[1]
    assert (told["counted"], told["more"], place.api.pages) == (100, True, 2)
