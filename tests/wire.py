"""The way from the core to its ports: a test may stand on it, and fail, lose or hold up any call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from types import MappingProxyType
from typing import Any, NamedTuple

from dueline.core.message import Message
from dueline.core.ports import BatchFailure, BatchRead
from dueline.core.rows import Key
from dueline.errors import Unavailable
from dueline.testing import MemoryTable


class Call(NamedTuple):
    """A call of a port on its way, such as `table.write`; `do` carries out what it requests, or only a part of it."""

    name: str
    args: tuple[Any, ...]
    do: Callable[..., Any]
    kwargs: Mapping[str, Any] = MappingProxyType({})


NOT_NOW = "InternalError: try again"
Around = Callable[[Call], Any]


def straight(call: Call) -> Any:
    return call.do(*call.args)


class Wire:
    """Hands every call to `around`, which answers it. A port gets one at a time: those in memory change by steps."""

    def __init__(self) -> None:
        self.around: Around = straight
        self.lock = RLock()

    def to(self, name: str, port: object) -> Any:
        """Return a port that is reached over this wire."""
        return _Tapped(name, port, self)


class _Tapped:
    def __init__(self, name: str, port: object, wire: Wire) -> None:
        self._name, self._port, self._wire = name, port, wire

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            def do(*args: Any) -> Any:
                with self._wire.lock:
                    return getattr(self._port, method)(*args, **kwargs)

            return self._wire.around(Call(name=f"{self._name}.{method}", args=args, do=do, kwargs=kwargs))

        return call


def on(name: str, react: Around, *, times: int = 1_000_000, skip: int = 0) -> Around:
    """Let calls of that name be answered by `react`: so many times, after the first `skip` of them."""
    count = 0

    def around(call: Call) -> Any:
        nonlocal count
        if call.name != name:
            return straight(call)
        count += 1
        return react(call) if skip < count <= skip + times else straight(call)

    return around


def by_name(reacts: Mapping[str, Around]) -> Around:
    """Let calls be answered by what is given for their names, and every other one straight."""
    return lambda call: reacts.get(call.name, straight)(call)


def failing(error: Exception) -> Around:
    """Fail a call before it takes effect, of any arguments."""

    def react(*_: Any, **__: Any) -> Any:
        raise error

    return react


def losing_the_answer(call: Call) -> Any:
    """Let a call take effect and lose its answer."""
    straight(call)
    raise Unavailable(f"{call.name}: the answer was lost")


def meanwhile(act: Callable[[], object]) -> Around:
    """Let something happen just before a call takes effect."""

    def react(call: Call) -> Any:
        act()
        return straight(call)

    return react


def leaving(call: Call, left: Sequence[int], *, reason: str = NOT_NOW, final: bool = False) -> Any:
    """Let a call succeed but for these parts, by number: rows stay unwritten, keys unread, or messages are refused."""
    parts = call.args[0]
    kept = [number for number in range(len(parts)) if number not in left]
    left_out, rest = [parts[number] for number in left], [parts[number] for number in kept]
    if call.name == "table.read":
        reading = call.do(rest)
        return BatchRead(rows=reading.rows, unread=reading.unread | frozenset(left_out))
    done = call.do(rest) if rest else []
    if call.name == "table.write":
        return [*left_out, *done]
    refused = [BatchFailure(index=number, reason=reason, final=final) for number in left]
    return [*refused, *(replace(each, index=kept[each.index]) for each in done)]


def done_in_part(call: Call, *, last: bool = False) -> Any:
    """Let a call of several parts succeed with the first or the last of them left out."""
    if call.name not in ("table.write", "table.read") and not call.name.endswith(".send"):
        return straight(call)
    return leaving(call, [len(call.args[0]) - 1 if last else 0])


def refusing(chosen: Callable[[Message], bool], *, final: bool = False) -> Around:
    """Refuse the chosen messages of a batch, for now or for good, and send the others."""
    return lambda call: leaving(
        call, [index for index, each in enumerate(call.args[0]) if chosen(each)], reason="no", final=final
    )


def refusing_for_good(call: Call) -> Any:
    """Let SQS refuse the first message of a batch, whatever is tried."""
    return leaving(call, [0], reason="InvalidMessageContents: no", final=True)


class UnseenTable(MemoryTable):
    """Reads and queries do not show a row whose sort key has one of the endings `unseen`; what writes meets it.

    So it is while the transaction that put a row is not over.
    """

    unseen: tuple[str, ...] = ()

    def read(self, keys: Sequence[Key], *, consistent: bool = True) -> BatchRead:
        reading = super().read(keys, consistent=consistent)
        return BatchRead(rows={key: row for key, row in reading.rows.items() if not key[1].endswith(self.unseen)})

    def _order_of(self, pk: str) -> list[str]:
        order = super()._order_of(pk)
        return [key for key in order if not key.endswith(self.unseen)] if self.unseen else order
