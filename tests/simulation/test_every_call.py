"""In the scenes that tell most; `python -m tests.simulation calls` tells the story in every scene."""

import pytest

from tests.simulation.calls import ACTS, AND_CRASHES, MEETING, PAGES, TELLING, broken_by, every_fault, every_visitor


@pytest.mark.parametrize("act", ACTS)
def test_every_promise_holds_whatever_befalls_any_call(act: str) -> None:
    pages = PAGES if act == "tick" else [1]
    calls = [call for scene in TELLING[act] for page_rows in pages for call in every_fault(act, scene, page_rows)]
    assert calls
    assert broken_by(calls) == []


@pytest.mark.parametrize("act", [*MEETING, "submit under keys"])
def test_every_promise_holds_whoever_comes_between_any_two_calls(act: str) -> None:
    calls = [call for scene in TELLING[act] for call in every_visitor(act, scene, {})]
    if act in ("ingest", "tick"):
        calls += every_visitor(act, TELLING[act][-1], AND_CRASHES)
    assert calls
    assert broken_by(calls) == []
