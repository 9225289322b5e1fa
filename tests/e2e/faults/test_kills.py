"""Promises that hold though all are killed in mid-work who have a part in it; `python -m tests.e2e.kills` does more."""

from pathlib import Path

import pytest

from tests.e2e.faults.ordeal import Plan, endure
from tests.e2e.faults.processes import PROC
from tests.e2e.faults.stage import Play

PLAN = Plan(kills=9, jobs=80, seconds=4, spread=3, again_after=8, seed=3)


@pytest.mark.skipif(not PROC.exists(), reason="only Linux tells when a process is dead")
def test_kills_lose_no_job_bring_none_early_or_after_a_promised_cancel_or_move_and_none_twice_without_a_cause(
    play: Play, tmp_path: Path
) -> None:
    story = endure(PLAN, play, tmp_path)
    assert not story.complaints, story
