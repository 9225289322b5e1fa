"""Runs by seeds; failures can be replayed, and shortened."""

import pytest

from dueline.core.tick import Entries
from tests.simulation.choices import shrink
from tests.simulation.run import first_failure, report_of, run

# `make soak-short`, which CI runs too, runs 3,000.
SEEDS = 60
FEW_SEEDS = range(20)


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
