import pytest

from tests.schedule_system import ScheduleSystem


@pytest.fixture
def system():
    """A deployment with schedules, whose queue `emails` has one partition."""
    return ScheduleSystem()
