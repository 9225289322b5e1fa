"""Promises of schedules that hold though all are killed who plan, change and send; see docs/reliability.md."""

from pathlib import Path

import pytest

from tests.e2e.faults.processes import PROC
from tests.e2e.faults.schedules import Plan, keep_to_schedules
from tests.e2e.faults.stage import Play

PLAN = Plan(schedules=7, changes=14, kills=6, seconds=5, lead=(20, 26), tail=6, seed=5)


@pytest.mark.skipif(not PROC.exists(), reason="only Linux tells when a process is dead")
def test_each_run_of_a_schedule_comes_once_and_none_after_a_cut_whoever_is_killed_and_none_dies(
    play: Play, tmp_path: Path
) -> None:
    story = keep_to_schedules(PLAN, play, tmp_path)
    assert not story.complaints, story
