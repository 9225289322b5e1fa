"""Each page is followed by the word, with the fault that it is about, on the local AWS."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.e2e.chaos.proxy import straight
from tests.e2e.runbooks import incidents
from tests.e2e.runbooks.incidents import Step
from tests.e2e.runbooks.on_call import PAGES, OnCall, on_call_at

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnCall]:
    with on_call_at(tmp_path_factory.mktemp("runbooks")) as on_call:
        yield on_call


@pytest.fixture
def on_call(opened: OnCall) -> Iterator[OnCall]:
    yield opened
    # Else a page that fails would leave its fault to the next ones.
    opened.proxy.around = straight


@dataclass(frozen=True, kw_only=True)
class Case:
    """A page, the fault that is made, what the doctor finds then, and what the page's commands show of it.

    `mend` does what the page leaves to people. What is counted for an hour is found all that time: it `stays`.
    """

    page: str
    fault: Step
    cause: tuple[str, str]
    shown: str
    mend: Step = incidents.nothing
    stays: bool = False
    filled: dict[str, str] = field(default_factory=dict)


CASES = [
    Case(
        page="missing-ticks",
        fault=incidents.stop_ticks_before_the_first,
        cause=("fence_still", "emails"),
        shown='"ReservedConcurrentExecutions": 0',
        mend=incidents.let_tick,
    ),
    Case(
        page="watch-silent",
        fault=incidents.stop_the_watch,
        cause=("watch_off", "chaos-watch"),
        shown='"ReservedConcurrentExecutions": 0',
        mend=incidents.let_watch,
    ),
    Case(
        page="ttl-off",
        fault=incidents.guard_what_waits_for_hours,
        cause=("ttl_off", "chaos-jobs"),
        shown='"TimeToLiveStatus": "DISABLED"',
        mend=incidents.catch_up,
        stays=True,
    ),
    Case(
        page="api-faults",
        fault=incidents.fail_a_request,
        cause=("api_faults", "chaos-api"),
        shown="refused",
        stays=True,
    ),
    Case(
        page="parked-jobs",
        fault=incidents.park_while_the_queue_is_gone,
        cause=("parked_jobs", "chaos-dispatch-dlq"),
        shown="CREATE_COMPLETE",
        mend=incidents.comes_to_its_queue,
        filled={"queue": "doomed"},
    ),
    Case(
        page="partitions-without-tick",
        fault=incidents.disable_a_schedule,
        cause=("tick_disabled", "invoices"),
        shown="invoices.1",
        filled={"queue": "invoices", "partition": "1"},
    ),
    Case(
        page="late-jobs",
        fault=incidents.refuse_what_is_late,
        cause=("late_jobs", "emails"),
        shown="not by you",
        mend=incidents.refuse_no_more,
        stays=True,
    ),
    Case(
        page="jobs-not-on-time",
        fault=incidents.let_come_late,
        cause=("jobs_not_on_time", "emails"),
        shown="Delayed",
        stays=True,
    ),
    Case(
        page="inbound-backlog",
        fault=incidents.send_while_ingest_is_off,
        cause=("function_stopped", "chaos-ingest"),
        shown="Disabled",
        mend=incidents.let_ingest,
    ),
    Case(
        page="inbound-dead-letters",
        fault=incidents.let_reject,
        cause=("inbound_dead_letters", "chaos-inbound-dlq"),
        shown="rejected",
    ),
    Case(
        page="dead-letters",
        fault=incidents.put("{}_emails_dlq", **{"dueline-error": "KeyError", "dueline-reason": "no key"}),
        cause=("dead_letters", "emails"),
        shown="KeyError",
    ),
    Case(
        page="schedules-stand-still",
        fault=incidents.turn_off("planner"),
        cause=("function_stopped", "chaos-planner"),
        shown="Disabled",
    ),
    Case(
        page="planner-dead-letters",
        fault=incidents.put("{}_dueline-planner_dlq"),
        cause=("planner_dead_letters", "chaos_dueline-planner_dlq"),
        shown="planning jobs failed",
    ),
    Case(
        page="failed-firings",
        fault=incidents.put("{}-tick-dlq"),
        cause=("failed_firings", "chaos-tick-dlq"),
        shown="SentTimestamp",
    ),
    Case(
        page="function-errors",
        fault=incidents.stop("api"),
        cause=("function_stopped", "chaos-api"),
        shown='"ReservedConcurrentExecutions": 0',
        filled={"function": "api"},
    ),
    Case(
        page="function-errors",
        fault=incidents.fail_a_tick,
        cause=("function_errors", "chaos-tick"),
        shown="it failed",
        filled={"function": "tick"},
        stays=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.cause[0])
def test_page_shows_the_cause_and_ends_it(on_call: OnCall, case: Case) -> None:
    """The doctor names the cause, and after the page is followed no more, but what is counted for an hour."""
    filled = {"queue": "emails"} | case.filled
    case.fault(on_call)
    assert case.cause in on_call.doctor()
    assert case.shown in on_call.follow(case.page, "See the cause", **filled)
    on_call.follow(case.page, "End it", **filled)
    case.mend(on_call)
    assert (case.cause in on_call.doctor()) is case.stays


def test_each_page_is_followed() -> None:
    assert {case.page for case in CASES} == {page.stem for page in PAGES.glob("*.md")}
