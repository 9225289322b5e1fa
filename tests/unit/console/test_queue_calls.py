"""What the page asks about queues, in memory."""

from datetime import timedelta

import pytest

from dueline.config import metrics
from dueline.errors import Forbidden, Unavailable
from dueline.lookup.control import Control
from dueline.model import instant
from dueline.model.rate import Rate
from dueline.ports import Depth
from tests.builders import NOW
from tests.unit.console.reached import EMPTY, Held, Place, an_overview, due_in
from tests.waiting import wait_until

MINUTE = instant.epoch_ms(NOW) // 1000
OVERVIEW = "/console/overview"
FIGURES = "/console/queues/emails/figures"
DUE = "/console/queues/emails/due"


def the_queue(place):
    (told,) = place.ask(OVERVIEW)[1]["queues"]
    return told


# At a glance


def test_each_queue_is_told_with_its_settings_its_counts_and_its_control():
    place = Place()
    levels = (Depth(waiting=3, in_flight=1, delayed=0), Depth(waiting=4, in_flight=0, delayed=2))
    control = Control(paused=True, rate=Rate.parse("50/s"))
    place.api.overviews["emails"] = an_overview(
        scheduled=1000, more_scheduled=True, next_due=NOW + timedelta(minutes=5), levels=levels, dead=2, control=control
    )
    status, told = place.ask(OVERVIEW)
    assert (status, told["asked"]) == (200, instant.text(NOW))
    assert told["queues"] == [
        {
            "name": "emails",
            "partitions": 1,
            "retention": 604800,
            "precise": False,
            "priorities": 1,
            "track": False,
            "scheduled": 1000,
            "more_scheduled": True,
            "next_due": "2026-11-21T07:10:00.000Z",
            "overdue": False,
            "fence_age": 42.5,
            "waiting": 7,
            "in_flight": 1,
            "delayed": 2,
            "levels": [
                {"priority": 1, "waiting": 3, "in_flight": 1, "delayed": 0},
                {"priority": 2, "waiting": 4, "in_flight": 0, "delayed": 2},
            ],
            "dead": 2,
            "paused": True,
            "rate": "50/s",
            "lateness": 0.0,
            "on_time": None,
            "error": None,
        }
    ]


def test_a_queue_that_fails_is_told_as_such_beside_the_others():
    place = Place()
    place.api.overviews = {"emails": Unavailable("no answer"), "invoices": EMPTY}
    failed, other = place.ask(OVERVIEW)[1]["queues"]
    assert (failed["name"], failed["error"]["status"], failed["scheduled"]) == ("emails", 503, None)
    assert (other["name"], other["error"]) == ("invoices", None)
    assert failed.keys() == other.keys()


def test_a_queue_is_late_by_what_is_overdue_or_by_what_its_ticks_reported_last():
    place = Place()
    place.api.overviews["emails"] = an_overview(next_due=NOW - timedelta(seconds=90))
    place.metrics.values["emails", metrics.LATENESS] = [(2, 30.0)]
    assert (the_queue(place)["lateness"], the_queue(place)["overdue"]) == (90.0, True)
    place.api.overviews["emails"] = EMPTY
    assert (the_queue(place)["lateness"], the_queue(place)["overdue"]) == (30.0, False)


def test_what_ticks_reported_long_ago_is_not_how_late_a_queue_is_now():
    place = Place()
    place.metrics.values["emails", metrics.LATENESS] = [(30, 500.0)]
    assert the_queue(place)["lateness"] == 0.0


def test_the_share_on_time_is_of_an_hour_and_none_where_nothing_was_handed_over():
    place = Place()
    place.metrics.values["emails", metrics.ON_TIME] = [(5, 90.0), (50, 6.0), (70, 1000.0)]
    place.metrics.values["emails", metrics.DELAYED] = [(5, 4.0)]
    assert the_queue(place)["on_time"] == 0.96
    assert place.ask(OVERVIEW)[1]["figures"] == {"reason": None}
    other = Place()
    assert (the_queue(other)["on_time"], other.ask(OVERVIEW)[1]["figures"]["reason"]) == (
        None,
        "CloudWatch has no metrics of this deployment in the last hour",
    )


def test_without_the_right_to_read_metrics_all_else_is_told_with_the_reason():
    place = Place()
    place.metrics.fault = Forbidden("reading metrics from CloudWatch: AccessDenied")
    told = place.ask(OVERVIEW)[1]
    assert told["figures"]["reason"] == "reading metrics from CloudWatch: AccessDenied"
    assert told["queues"][0]["error"] is None


def test_metrics_are_read_once_in_a_minute_for_all_queues_together():
    place = Place()
    place.api.overviews = {f"q{number}": EMPTY for number in range(50)}
    for _ in range(3):
        assert len(place.ask(OVERVIEW)[1]["queues"]) == 50
    assert place.metrics.reads == 1
    place.clock.sleep(61)
    place.ask(OVERVIEW)
    assert place.metrics.reads == 2


def test_nobody_waits_for_long_until_cloudwatch_answers():
    place = Place(moment=0)
    place.metrics.values["emails", metrics.ON_TIME] = [(5, 90.0)]
    place.wire.around = held = Held("metrics.read")
    told = place.ask(OVERVIEW)[1]
    assert (told["figures"]["reason"], told["queues"][0]["error"]) == ("CloudWatch has not answered yet", None)
    for _ in range(3):
        place.clock.sleep(61)
        place.ask(OVERVIEW)
    held.may_go.set()
    assert wait_until(lambda: the_queue(place)["on_time"] == 1.0, every=0.01)
    assert wait_until(lambda: held.count > 1, every=0.01)
    assert held.count == 2


# Figures


def test_figures_tell_lateness_throughput_and_the_share_on_time():
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
    assert told["series"] == {
        "lateness": [[MINUTE - 120, 1.5], [MINUTE - 60, 0.0]],
        "throughput": [[MINUTE - 120, 10.0]],
        "on_time": [[MINUTE - 180, 0.0], [MINUTE - 120, 0.8], [MINUTE - 60, 1.0]],
    }


def test_without_figures_the_reason_is_told():
    place = Place()
    told = place.ask(FIGURES)[1]
    assert (told["series"], told["reason"]) == (None, "CloudWatch has no metrics of queue 'emails' in this time")
    place.metrics.fault = Forbidden("AccessDenied")
    assert place.ask(FIGURES)[1]["reason"] == "AccessDenied"


@pytest.mark.parametrize(("hours", "period"), [("6", 60), ("7", 300), ("36", 300), ("37", 3600), ("336", 3600)])
def test_a_longer_time_has_longer_periods(hours, period):
    assert Place().ask(f"{FIGURES}?hours={hours}")[1]["period"] == period


@pytest.mark.parametrize("hours", ["0", "-1", "337", "3.5", "", "x", "9" * 5000, "\u0663"])
def test_hours_that_are_none_are_refused(hours):
    status, problem = Place().ask(f"{FIGURES}?hours={hours}")
    assert (status, "it must be a whole number from 1 to 336" in problem["detail"]) == (400, True)


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
    told = place.ask(DUE)[1]
    assert (told["counted"], told["more"], place.api.pages) == (1000, more, 11 if more else 10)
    assert told["until"] == (instant.text(NOW + timedelta(seconds=999)) if more else told["to"])


def test_counting_ends_after_three_seconds_with_what_it_has():
    place = Place()
    place.api.jobs, ask = [due_in(number) for number in range(500)], place.api.page

    def slow(*given, **more):
        place.clock.sleep(2)
        return ask(*given, **more)

    place.api.page = slow
    told = place.ask(DUE)[1]
    assert (told["counted"], told["more"], place.api.pages) == (100, True, 2)
