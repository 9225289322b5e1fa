from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core.request import delay_seconds, partition_of, whole_seconds
from tests.builders import NOW

LEFT = st.timedeltas(timedelta(days=-1), timedelta(seconds=900))


@given(LEFT)
def test_job_is_never_early_and_at_most_a_second_late(left):
    held = timedelta(seconds=delay_seconds(NOW + left, now=NOW))
    assert max(left, timedelta(0)) <= held < max(left, timedelta(0)) + timedelta(seconds=1)


@given(LEFT)
def test_precise_queue_gets_its_job_just_before(left):
    held = timedelta(seconds=delay_seconds(NOW + left, now=NOW, precise=True))
    least = left - timedelta(milliseconds=250)
    assert max(least, timedelta(0)) - timedelta(seconds=1) < held <= max(least, timedelta(0))


@pytest.mark.parametrize(("delay", "held"), [(0, 0), (-5, 0), (0.001, 1), (1, 1), (899.2, 900), (900, 900)])
def test_a_delay_is_rounded_up_to_whole_seconds(delay, held):
    assert whole_seconds(delay) == held


@pytest.mark.parametrize(("delay", "precise"), [(900.001, False), (901, True), (86_400, False)])
def test_a_delay_that_sqs_cannot_hold_is_refused(delay, precise):
    with pytest.raises(ValueError, match="over the 900 s"):
        whole_seconds(delay, precise=precise)


def test_partition_of_a_uid_is_stable():
    assert partition_of("5f0f3f5e-1111-4000-8000-000000000000", 64) == 41


def test_jobs_spread_over_partitions():
    counts = Counter(partition_of(f"5f0f3f5e-1111-4000-8000-{n:012x}", 4) for n in range(4000))
    assert all(800 < counts[partition] < 1200 for partition in range(4))
