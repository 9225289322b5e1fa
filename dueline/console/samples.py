"""Samples: how the page shows a dead letter."""

from typing import Any

from dueline.model import instant
from dueline.model.folding import unfolded
from dueline.model.message import ATTEMPTS, ID, REASON, TENANT
from dueline.model.trace import TraceContext
from dueline.operate.dead_letters import number
from dueline.ports import Arrival

_MOST_CHARACTERS = 2000


def sample(arrival: Arrival) -> dict[str, Any]:
    """Return whose job it was, why it failed, and the beginning of its payload."""
    told, body = unfolded(arrival.message.attributes), arrival.message.body
    trace = TraceContext.from_headers(told)
    return {
        "id": told.get(ID),
        "payload": body[:_MOST_CHARACTERS],
        "cut": len(body) > _MOST_CHARACTERS,
        "reason": told.get(REASON),
        "attempts": number(told.get(ATTEMPTS)) or None,
        "sent": instant.text(arrival.sent),
        "tenant": told.get(TENANT),
        "trace": trace.parent.split("-")[1] if trace else None,
    }
