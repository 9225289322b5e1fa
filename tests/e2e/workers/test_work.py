"""What workers promise, with three processes and a Lambda consumer. In full: `python -m tests.e2e.workers --help`."""

from pathlib import Path

from dueline import State
from tests.e2e.workers import fates, shift
from tests.e2e.workers.stage import staged

JOBS = 120


def test_every_job_ends_once_in_success_in_the_dead_letter_queue_or_cancelled_whatever_ends_its_worker(
    tmp_path: Path,
) -> None:
    with staged(tmp_path) as stage:
        ended = shift.live(stage, jobs=JOBS, seed=1)
    assert not ended.complaints(), ended.summary()
    assert len(ended.told.fates) == JOBS
    assert set(ended.told.fates.values()) == set(fates.ALL)
    assert (ended.told.killed, len(ended.told.exits)) == (1, 3)
    assert State.CANCELLED in ended.told.cancels.values()
