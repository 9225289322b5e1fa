from pathlib import Path

import pytest

# In this order, so that one of the processes that run them begins with what mostly waits, another with what computes.
PLACES = (
    "tests/e2e",
    "tests/e2e/test_local_run.py",
    "tests/simulation",
    "tests/e2e/faults",
    "tests/template",
    "tests/contract",
    "tests/unit",
)
# Each in one process, because its tests share costly fixtures.
TOGETHER = {"tests/e2e", "tests/e2e/test_local_run.py", "tests/e2e/faults", "tests/template", "tests/contract"}


# First: xdist reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: PLACES.index(_place(item)) if _place(item) else len(PLACES))
    for item in items:
        if _place(item) in TOGETHER:
            # Two deployments under load at once would leave neither enough of the machine.
            item.add_marker(pytest.mark.xdist_group(_place(item).removesuffix("/faults")))


def _place(item: pytest.Item) -> str:
    path = Path(item.path).relative_to(item.config.rootpath).as_posix()
    return max((each for each in PLACES if f"{path}/".startswith(f"{each}/")), key=len, default="")
