"""Promises that hold though both tables throttle until jobs are overdue, and then that of jobs whatever is written."""

from pathlib import Path

from tests.e2e.faults.drought import Plan, live_through_a_drought
from tests.e2e.faults.stage import Play


def test_tables_that_throttle_refuse_and_lose_no_job_and_that_of_jobs_alone_delays_none_that_it_has(
    play: Play, tmp_path: Path
) -> None:
    story = live_through_a_drought(Plan(jobs=12), play, tmp_path)
    assert not story.complaints, story
