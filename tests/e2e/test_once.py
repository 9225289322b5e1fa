"""The deployed table of which jobs had their effect.

The emulator knows no rights by leading key: those are in tests/template.
"""

import pytest

from dueline.aws.once import DynamoOnce
from dueline.config.names import Names
from dueline.worker.delivery import Interrupted
from local.emulator import Emulator


def test_the_deployed_table_takes_notes(emulator: Emulator, deployed: object) -> None:
    had: list[str] = []

    def fails() -> None:
        had.append("failed")
        raise ValueError("no such address")

    def dies() -> None:
        had.append("died")
        raise SystemExit

    once = DynamoOnce(emulator.client("dynamodb"), Names("e2e").once, queue="emails")
    with pytest.raises(ValueError, match="no such address"):
        once("id", fails)
    once("id", lambda: had.append("ended"))
    once("id", lambda: had.append("ended"))
    with pytest.raises(SystemExit):
        once("other", dies)
    with pytest.raises(Interrupted):
        once("other", lambda: had.append("ended"))
    assert had == ["failed", "ended", "died"]
