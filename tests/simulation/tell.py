"""A run, told so that one can follow it."""

import re
from collections.abc import Sequence
from typing import Any

from dueline.model import instant
from dueline.model.message import Message
from tests.builders import NOW
from tests.simulation.acts import Act, Event
from tests.simulation.mishaps import Fault, Hot, Meanwhile, Mishap, Pause, SlowAnswer
from tests.wire import Call

_UID = re.compile(r"00000000-0000-4000-8000-(?P<uid>[0-9a-f]{12})")
_ID = re.compile(r"[a-z]+\.\d\.[dt]\.\d{13}\." + _UID.pattern)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

IDLE = ("dispatched 0", "ingested 0 of 0", "worked off 0 of 0", "there is no such job")

Step = tuple[float, str, str]


def told_act(act: Act | Event) -> str:
    fields = ", ".join(_told_value(value) for value in vars(act).values())
    return f"{type(act).__name__.lower()}({fields})"


def told_call(call: Call, mishap: Mishap | None) -> str:
    args = ", ".join([*map(_told_value, call.args), *(f"{name}={value}" for name, value in call.kwargs.items())])
    return f"{call.name}({args}){_told_mishap(mishap)}"


def told(trace: Sequence[Step]) -> str:
    """Return a trace, a line a step, without the processes that found nothing to do.

    Instants are told in seconds from its beginning, jobs by `job` and a number.
    """
    idle = {name for _, name, text in trace if text in IDLE}
    told = [step for step in trace if step[1] not in idle]
    return "\n".join(f"{elapsed:8.1f} s  {name:<28} {_shortened(text)}" for elapsed, name, text in told)


def _shortened(text: str) -> str:
    text = _ID.sub(lambda found: f"job{int(found['uid'], 16):x}", text)
    text = _INSTANT.sub(lambda found: f"{(instant.parse(found[0]) - NOW).total_seconds():g}s", text)
    return _UID.sub(lambda found: f"job{int(found['uid'], 16):x}", text)


def _told_value(value: Any) -> str:
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
            return f"[{'; '.join(map(_told_value, value))}]"
    return str(value)


def _told_mishap(mishap: Mishap | None) -> str:
    match mishap:
        case None | Meanwhile():
            return ""
        case Fault():
            return f"  <- {mishap.value}"
        case Hot(queue=queue):
            return f"  <- throttled: {queue or 'all queues'}"
        case Pause(seconds):
            return f"  <- stood still for {seconds} s before it"
        case SlowAnswer(seconds):
            return f"  <- answered after {seconds} s"
