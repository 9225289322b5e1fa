"""Each story has an emulator of its own; they share what is deployed there."""

import pytest

from tests.e2e.faults.stage import Play, rehearse


@pytest.fixture(scope="session")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    return rehearse(tmp_path_factory.mktemp("play"))
