import os
from pathlib import Path

import pytest

NICE = 10
AUTOGROUP = Path("/proc/self/autogroup")


@pytest.fixture(scope="session", autouse=True)
def polite() -> None:
    """What only computes leaves the machine to tests beside it that keep to the clock.

    Linux shares a machine among sessions first, and heeds niceness within each: so a process of xdist's goes into a
    session of its own, which is nice as a whole.
    """
    os.nice(NICE)
    if "PYTEST_XDIST_WORKER" in os.environ and AUTOGROUP.exists():
        os.setsid()
        AUTOGROUP.write_text(str(NICE))
