"""What the bench measures growth with: the rows that it loads are what the code reads, and its figures those of AWS."""

import pytest

from bench.growth import step_costs
from bench.growth.deployment import HAND_OVER, IDLE_TICK, PARTITION
from dueline.model.rows import FIRST, read_job


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    with step_costs.places((0, 30), scratch=tmp_path_factory.mktemp("growth"), tell=lambda _: None) as places:
        yield places


def test_what_is_loaded_are_jobs_in_due_order_that_wait(places):
    none, thirty = (
        [read_job(row) for row in place.bare.table.page(PARTITION, after=FIRST, until="~").rows] for place in places
    )
    assert none == []
    assert len({job.id.uid for job in thirty}) == 30
    assert [job.id.due for job in thirty] == sorted(job.id.due for job in thirty)


def test_each_step_costs_the_same_with_none_and_with_30_jobs_waiting(places):
    none, thirty = map(step_costs.costs, places)
    assert none == thirty
    assert {
        step: (sum(cost["requests"].values()), cost["read_units"], cost["write_units"]) for step, cost in none.items()
    } == {
        "submit": (2, 1, 1),
        "look-up": (1, 5, 0),
        "cancel": (3, 1, 2),
        IDLE_TICK: (2, 1, 1),
        HAND_OVER: (106, 250, 5),
    }


def test_every_step_and_size_is_timed_in_each_round(places, monkeypatch):
    monkeypatch.setattr(step_costs, "_WARMING_ROUNDS", 0)
    taken = step_costs.cpu(places, rounds=2, tell=lambda _: None)
    counts = {step: {size: len(each) for size, each in sizes.items()} for step, sizes in taken.items()}
    of_each = {step: {0: 2, 30: 2} for step in ("submit", "look-up", "cancel", IDLE_TICK)}
    assert counts == {**of_each, HAND_OVER: {0: 1, 30: 1}}
    assert min(seconds for sizes in taken.values() for each in sizes.values() for seconds in each) > 0


def test_what_is_not_as_it_was_to_be_loaded_is_found(places):
    with pytest.raises(RuntimeError, match="not as if 31 jobs wait"):
        step_costs.check(places[1].bare, 31)
