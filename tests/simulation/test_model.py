"""Every state of the models keeps every promise, in small worlds.

`python -m tests.simulation.model`, a part of `make soak`, visits all of them, and leaves out each rule.
"""

from pathlib import Path

import pytest

from tests.simulation.model.__main__ import KINDS
from tests.simulation.model.jobs import CROWDS, TwoJobs
from tests.simulation.model.store import Rules, broken_without

QUICK = [
    *(("two jobs", name) for name in ("one of each", "far at first")),
    ("a job submitted", "one page"),
    ("a job moved", "sooner, one at a time"),
    ("a schedule", "updated and paused, one planner"),
    ("a name", "keep 2 once first refused | replace 1+1"),
    ("a name", "Z: reschedule 2 | cancel id"),
    ("a name", "ttl Z until 4: reschedule 2 once | reschedule 3 once"),
]


@pytest.mark.parametrize(("title", "world"), QUICK)
def test_no_state_breaks_a_promise(title: str, world: str):
    kind = KINDS[title]
    explored = kind.make(kind.rules(), kind.worlds[world]).search()
    assert explored.broken == "", "\n".join(explored.trace)
    assert explored.states == kind.worlds[world].states


def test_docs_have_the_number_of_states():
    scenes, names = (KINDS[title].worlds for title in ("a job moved", "a name"))
    moved = sum(scenes[name].states for name in ("sooner", "later", "elsewhere"))
    figures = [f"{count:,} states" for count in (CROWDS["two of each"].states, moved)]
    figures += [f"{len(names)} worlds", f"{sum(each.states for each in names.values()):,} states"]
    figures += [f"{len(broken_without(kind.rules))} rules" for kind in KINDS.values()]
    page = " ".join((Path(__file__).parents[2] / "docs" / "reliability.md").read_text().split())
    assert [figure for figure in figures if figure not in page] == []


def test_trace_of_a_broken_promise():
    explored = TwoJobs(Rules(settled_is_carried_over_pages=False), CROWDS["one of each"]).search()
    assert explored.broken == "exact cancel"
    assert explored.trace == [
        "ingest receives ab",
        "ingest writes a",
        "cancel writes the cancellation",
        "cancel finds the fence before due, notes its promise, answers 200",
        "tick takes the lease, the fence is past due",
        "tick reads a#cancelled, and there may be more",
        "tick reads a#job, and there is no more",
        "tick sends a",
    ]
