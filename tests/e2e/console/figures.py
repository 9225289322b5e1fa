"""Figures of past hours in the log of the tick function."""

import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from dueline.config.names import Names
from local.emulator import Emulator

_MOST_EVENTS = 1000


def put_figures(emulator: Emulator, deployment: str, lines: Iterable[tuple[timedelta, Mapping[str, Any]]]) -> None:
    """Log lines as the tick function does, each so long ago."""
    logs, now = emulator.client("logs"), datetime.now(UTC)
    place = {"logGroupName": Names(deployment).function_log("tick"), "logStreamName": str(uuid.uuid4())}
    logs.create_log_stream(**place)
    events = [
        {"timestamp": int((now - ago).timestamp() * 1000), "message": json.dumps({"deployment": deployment, **line})}
        for ago, line in sorted(lines, key=lambda each: -each[0])
    ]
    for first in range(0, len(events), _MOST_EVENTS):
        logs.put_log_events(**place, logEvents=events[first : first + _MOST_EVENTS])
