import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def polite() -> None:
    """What only computes leaves the machine to tests beside it that keep to the clock."""
    os.nice(10)
