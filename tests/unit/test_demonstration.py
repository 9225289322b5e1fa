from datetime import UTC, datetime, timedelta

import pytest

from local.demonstration import Landed, Scheduled, Summary, summary_of

DUE = datetime(2026, 11, 21, tzinfo=UTC)


def scheduled(*lateness: float, cancelled: bool = False) -> Scheduled:
    landed = [Landed(id="id", payload="1", due=DUE, at=DUE + timedelta(seconds=seconds)) for seconds in lateness]
    return Scheduled(what="", queue="emails", id="id", due=DUE, route="table", cancelled=cancelled, landed=landed)


def test_run_without_a_broken_promise_is_good() -> None:
    summary = summary_of([scheduled(0.1), scheduled(0.9), scheduled(cancelled=True)])
    assert summary.is_good
    assert (summary.scheduled, summary.delivered, summary.cancelled) == (3, 2, 1)
    assert (summary.p50, summary.p95, summary.longest) == pytest.approx((0.1, 0.9, 0.9))


@pytest.mark.parametrize(
    ("job", "named"),
    [(scheduled(), "lost"), (scheduled(-0.1), "early"), (scheduled(0.1, cancelled=True), "broken")],
)
def test_lost_early_or_cancelled_delivery_makes_a_run_bad(job: Scheduled, named: str) -> None:
    summary: Summary = summary_of([scheduled(0.1), job])
    assert not summary.is_good
    assert getattr(summary, named) == 1
