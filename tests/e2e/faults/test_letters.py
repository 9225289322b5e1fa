"""Messages straight into the inbound queue, and jobs of a queue that was deleted while they were on their way."""

from pathlib import Path

from tests.e2e.faults.calm import Plan, live_in_calm
from tests.e2e.faults.stage import Play


def test_what_cannot_be_delivered_ends_once_in_its_dead_letter_queue_and_the_rest_goes_through(
    play: Play, tmp_path: Path
) -> None:
    story = live_in_calm(Plan(jobs=5), play, tmp_path)
    assert not story.complaints, story
