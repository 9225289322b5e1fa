"""A run that breaks a promise can be seen again, and short."""

import pytest

from dueline.protocol.entries import Entries
from tests.simulation.choices import Choices
from tests.simulation.run import first_failure, report_of, run, shrunk
from tests.simulation.shrink import shrink

SEEDS = range(20)


@pytest.fixture
def _a_tick_that_forgets_a_cancellation_over_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Entries.of
    monkeypatch.setattr(Entries, "of", lambda _, page, *, more: of(Entries(), page, more=more))


def test_a_seed_gives_one_and_the_same_run() -> None:
    (first, _), (second, _) = run(seed=7), run(seed=7)
    assert (first.calls, first.record) == (second.calls, second.record)


def test_another_seed_gives_another_run() -> None:
    (first, _), (second, _) = run(seed=7), run(seed=8)
    assert first.record != second.record


@pytest.mark.usefixtures("_a_tick_that_forgets_a_cancellation_over_a_page")
def test_a_seed_that_breaks_a_promise_is_found_shortened_and_told() -> None:
    failures = {seed: run(seed=seed)[1] for seed in SEEDS}
    found = {seed: each for seed, each in failures.items() if each is not None and each.promise == "exact cancel"}
    seed, failure = next(iter(found.items()))
    assert first_failure(SEEDS) == next(seed for seed, each in failures.items() if each is not None)
    assert 0 < len(shrunk(failure)) < len(failure.decided)
    told = report_of(seed)
    assert "Broken: exact cancel: job" in told
    assert told.endswith(f"replay it with: python -m tests.simulation replay {seed}")


@pytest.mark.usefixtures("_a_tick_that_forgets_a_cancellation_over_a_page")
def test_the_decisions_of_a_run_give_that_run_again() -> None:
    world, failure = run(seed=first_failure(SEEDS))
    assert failure is not None
    again, same = run(decided=failure.decided)
    assert same == failure
    assert again.record == world.record


def test_a_shortened_run_keeps_only_the_decisions_that_it_needs() -> None:
    decided = {("stream", place): 3 for place in range(20)}

    def breaks(kept):
        return kept.get(("stream", 4), 0) >= 2 and ("stream", 17) in kept

    assert shrink(decided, breaks) == {("stream", 4): 2, ("stream", 17): 1}


def test_a_decision_that_is_not_named_is_the_harmless_one() -> None:
    stream = Choices(decided={("stream", 1): 2}).stream("stream")
    assert [stream.pick("abc") for _ in range(3)] == ["a", "c", "a"]
