"""Each story has an emulator of its own; all of them begin at once, because each takes its time."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults.calm import Calm, live_in_calm
from tests.e2e.faults.drought import Dried, live_through_a_drought
from tests.e2e.faults.ordeal import Plan, Survived, endure
from tests.e2e.faults.stage import Play, rehearse
from tests.e2e.faults.storm import Stormed, weather_a_storm

PLAN = Plan(kills=12, jobs=300, seconds=5, spread=3, again_after=4, seed=3)


def endure_a_little(play: Play, folder: Path) -> Survived:
    return endure(PLAN, play, folder)


STORIES = (weather_a_storm, live_through_a_drought, live_in_calm, endure_a_little)


@pytest.fixture(scope="session")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    return rehearse(tmp_path_factory.mktemp("play"))


@pytest.fixture(scope="session")
def begun(play: Play, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, "Future[Any]"]]:
    """The stories, each in a thread of its own."""
    with ThreadPoolExecutor(len(STORIES)) as pool:
        yield {story.__name__: pool.submit(story, play, tmp_path_factory.mktemp("stage")) for story in STORIES}


@pytest.fixture(scope="session")
def stormed(begun: dict[str, "Future[Any]"]) -> Stormed:
    return begun[weather_a_storm.__name__].result()


@pytest.fixture(scope="session")
def dried(begun: dict[str, "Future[Any]"]) -> Dried:
    return begun[live_through_a_drought.__name__].result()


@pytest.fixture(scope="session")
def calm(begun: dict[str, "Future[Any]"]) -> Calm:
    return begun[live_in_calm.__name__].result()


@pytest.fixture(scope="session")
def survived(begun: dict[str, "Future[Any]"]) -> Survived:
    return begun[endure_a_little.__name__].result()
