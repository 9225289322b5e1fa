from pathlib import Path

import pytest

# What shares costly fixtures stays together in one of the processes that run the tests.
TOGETHER = ("tests/e2e/faults", "tests/e2e", "tests/template", "tests/contract")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = Path(item.path).relative_to(item.config.rootpath).as_posix()
        group = next((each for each in TOGETHER if folder.startswith(f"{each}/")), None)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
