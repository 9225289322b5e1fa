"""Promises that hold though the table throttles every request until jobs are overdue."""

from pathlib import Path

from tests.e2e.faults.drought import Plan, live_through_a_drought
from tests.e2e.faults.stage import Play


def test_a_table_that_throttles_delays_jobs_until_it_does_not_and_loses_none(play: Play, tmp_path: Path) -> None:
    story = live_through_a_drought(Plan(jobs=12), play, tmp_path)
    assert not story.complaints, story
