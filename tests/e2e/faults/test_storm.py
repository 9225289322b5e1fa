"""Promises that hold though requests are delayed, lost, repeated, throttled, refused and done in part."""

from pathlib import Path

from tests.e2e.faults.stage import Play
from tests.e2e.faults.storm import Plan, weather_a_storm


def test_a_storm_of_mishaps_loses_no_job_and_brings_none_early_or_after_a_promised_cancel(
    play: Play, tmp_path: Path
) -> None:
    story = weather_a_storm(Plan(jobs=40, seed=7), play, tmp_path)
    assert not story.complaints, story
