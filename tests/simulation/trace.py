"""The trace of a run, as text."""

import re
from collections.abc import Sequence
from typing import Any

from dueline.core import instant
from dueline.core.message import Message
from tests.builders import NOW
from tests.simulation.actions import Action, Event
from tests.simulation.faults import CallFault, Fault, Interleaved
from tests.wire import Call

_UID = re.compile(r"00000000-0000-4000-8000-(?P<uid>[0-9a-f]{12})")
_ID = re.compile(r"[a-z]+\.\d\.[dt]\.\d{13}\." + _UID.pattern)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

IDLE = ("dispatched 0", "ingested 0 of 0", "worked off 0 of 0", "there is no such job")

Step = tuple[float, str, str]


def describe_action(action: Action | Event) -> str:
    fields = ", ".join(_describe_value(value) for value in vars(action).values())
    return f"{type(action).__name__.lower()}({fields})"


def describe_call(call: Call, fault: Fault | None) -> str:
    args = ", ".join([*map(_describe_value, call.args), *(f"{name}={value}" for name, value in call.kwargs.items())])
    return f"{call.name}({args}){_describe_fault(fault)}"


def render(trace: Sequence[Step]) -> str:
    """Return a trace, a line a step, without the processes that had nothing to do.

    Instants are in seconds from its beginning; a job is `job` and a number.
    """
    idle = {name for _, name, text in trace if text in IDLE}
    steps = [step for step in trace if step[1] not in idle]
    return "\n".join(f"{elapsed:8.1f} s  {name:<28} {_shortened(text)}" for elapsed, name, text in steps)


def _shortened(text: str) -> str:
    text = _ID.sub(lambda match: f"job{int(match['uid'], 16):x}", text)
    text = _INSTANT.sub(lambda match: f"{(instant.parse(match[0]) - NOW).total_seconds():g}s", text)
    return _UID.sub(lambda match: f"job{int(match['uid'], 16):x}", text)


def _describe_value(value: Any) -> str:
    match value:
        case range():
            return "all"
        case Message():
            return f"{value.attributes.get('dueline-id', '?')} in {value.delay} s"
        case {"pk": pk, "sk": sk}:
            return f"{pk} {sk}"
        case (str(pk), str(sk)):
            return f"{pk} {sk}"
        case list() | tuple():
            return f"[{'; '.join(map(_describe_value, value))}]"
    return str(value)


def _describe_fault(fault: Fault | None) -> str:
    # What comes in between has lines of its own.
    is_shown = fault and not isinstance(fault, Interleaved)
    return f"  <- {fault.value if isinstance(fault, CallFault) else fault}" if is_shown else ""
