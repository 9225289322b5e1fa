"""Runs by seeds; failures can be replayed, and shortened."""

from datetime import timedelta

import pytest

from dueline.core.job import Partition
from dueline.core.tick import Entries
from tests.builders import a_job
from tests.simulation.choices import Choices, shrink
from tests.simulation.history import UNTOUCHED, History
from tests.simulation.record import Record, Sent, Violation
from tests.simulation.run import BACKLOG, compare, first_failure, report_of, run

# `make soak-short`, which CI runs too, runs 3,000.
SEEDS = 60
FEW_SEEDS = range(20)
ENOUGH_COMPARED = 5
JOB = a_job(partition=Partition(queue=UNTOUCHED, number=0))


def test_no_seed_breaks_a_promise() -> None:
    broken = first_failure(range(SEEDS))
    assert broken is None, report_of(broken)


# Replay


def test_seed_gives_the_same_run() -> None:
    (first, _), (second, _), (other, _) = run(seed=7), run(seed=7), run(seed=8)
    assert first.record == second.record
    assert first.record != other.record


def test_broken_promise_is_found_replayed_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Entries.of
    monkeypatch.setattr(Entries, "of", lambda _, page, *, more: of(Entries(), page, more=more))
    seed = first_failure(FEW_SEEDS)
    assert seed is not None
    world, failure = run(seed=seed)
    assert failure is not None
    again, same = run(decided=failure.decided)
    assert (same, again.record) == (failure, world.record)
    report = report_of(seed)
    assert f"Violation: {failure.promise}: job" in report
    assert report.endswith(f"replay it with: python -m tests.simulation replay {seed}")


def test_shrunk_run_keeps_only_needed_decisions() -> None:
    decided = {("stream", place): 3 for place in range(20)}

    def breaks(kept):
        return kept.get(("stream", 4), 0) >= 2 and ("stream", 17) in kept

    assert shrink(decided, breaks) == {("stream", 4): 2, ("stream", 17): 1}


def test_decision_that_is_not_named_is_harmless() -> None:
    stream = Choices(decided={("stream", 1): 2}).stream("stream")
    assert [stream.pick("abc") for _ in range(3)] == ["a", "c", "a"]


# Isolation: the untouched queue is compared with what it is alone, and that can fail.


def record_of(*, late: float, ingested: float = 0.0) -> Record:
    visible = JOB.id.due + timedelta(seconds=late)
    sent = [Sent(id=JOB.id, queue=UNTOUCHED, visible=visible, by="a tick")]
    return Record(accepted={JOB.id: JOB}, submitted={JOB.id: 0.0}, acknowledged={JOB.id: ingested}, sent=sent)


def test_isolation_allows_a_second_unless_ingested_late() -> None:
    assert compare(record_of(late=61), record_of(late=60)) == 1
    with pytest.raises(Violation, match="isolation"):
        compare(record_of(late=1.1), record_of(late=0))
    assert compare(record_of(late=60, ingested=BACKLOG), record_of(late=0)) == 0


def test_histories_compare_an_untouched_queue() -> None:
    compared = 0
    for seed in range(120):
        history = History(Choices(seed=seed))
        if history.is_isolated:
            alone = History(Choices(seed=seed), alone=True)
            for each in (history, alone):
                each.write().execute()
            compared += compare(history.world.record, alone.world.record)
        if compared >= ENOUGH_COMPARED:
            return
    pytest.fail(f"only {compared} jobs of untouched queues were compared")
