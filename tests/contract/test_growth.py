"""The rows that the bench loads are what the code reads, and each step's costs do not depend on them."""

from unittest.mock import patch

import pytest

from bench import growth
from bench.growth import BUSY_TICK, IDLE_TICK, check, step_costs, tables


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    with patch.object(growth, "SENT", 50), tables((0, 30), scratch=tmp_path_factory.mktemp("growth")) as ready:
        yield ready


def test_loaded_rows_are_checked(ready):
    with pytest.raises(RuntimeError, match="not as if 31 jobs wait"):
        check(ready[30], 31)


def test_backlog_changes_no_step_cost(ready):
    none, thirty = map(step_costs, ready.values())
    assert none == thirty
    assert {
        step: (sum(cost["requests"].values()), cost["read_units"], cost["write_units"]) for step, cost in none.items()
    } == {
        "submit": (1, 0, 1),
        "look-up": (1, 5, 0),
        "cancel": (1, 0, 1),
        IDLE_TICK: (2, 1, 1),
        BUSY_TICK: (8, 13, 2),
    }
