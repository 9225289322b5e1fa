"""The pytest plugin: the fixture `dueline` is a deployment in memory, another one for each test."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dueline.testing.local import Local


@pytest.fixture
def dueline_queues(pytestconfig: pytest.Config) -> Any:
    """The queues of the fixture `dueline`: the queues.yaml beside the project's pytest settings.

    A test, a module or a conftest.py may have a fixture of this name: it returns what `Local` takes.
    """
    path = pytestconfig.rootpath / "queues.yaml"
    if not path.exists():
        raise pytest.UsageError(f'{path} does not exist: write a fixture dueline_queues that returns ["emails"]')
    return path


@pytest.fixture
def dueline(dueline_queues: Any) -> "Local":
    """A deployment in memory, `dueline.testing.Local`, with the queues of the fixture `dueline_queues`."""
    # pytest imports this module wherever Dueline is installed: the rest is imported for tests with the fixture.
    from dueline.testing.local import Local

    return Local(dueline_queues)
