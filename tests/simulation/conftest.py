from collections.abc import Iterator

import pytest

from dueline import tick


@pytest.fixture(autouse=True, scope="session")
def _a_small_world() -> Iterator[None]:
    """Let a handful of jobs be many: two fill a wave, three make a checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tick, "WAVE_JOBS", 2)
        patch.setattr(tick, "CHECKPOINT_JOBS", 3)
        yield
