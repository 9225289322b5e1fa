"""What requests cost: how many of each kind, their bytes, and the units of DynamoDB that they consume."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.units import consumed_units

if TYPE_CHECKING:
    from boto3 import Session

_WRITES = ("BatchWriteItem", "PutItem", "UpdateItem")
# A checksum in decimals: a digit more or less by chance.
_UNEVEN = "x-amz-crc32"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The requests of one step by their kind, bytes out and in with headers, and units."""

    requests: dict[str, int]
    bytes_out: int
    bytes_in: int
    read_units: float
    write_units: float


class Meter:
    """Counts what the clients of a session send and receive.

    Units have to be asked for, which makes requests and answers longer: so bytes are counted while `asks` is off.
    """

    def __init__(self, session: "Session") -> None:
        self.asks = False
        # Threads append at once; what a list takes, it takes whole.
        self._told: list[tuple[str, str, float]] = []
        session.events.register("before-parameter-build.dynamodb", self._ask)
        session.events.register("before-send", self._sent)
        session.events.register("response-received", self._received)
        session.events.register("after-call.dynamodb", self._consumed)

    def take(self) -> Cost:
        """Return what was counted since it was taken last."""
        told, self._told = self._told, []
        sums = {
            what: sum(amount for each, _, amount in told if each == what) for what in ("out", "in", "read", "write")
        }
        return Cost(
            requests=dict(sorted(Counter(kind for what, kind, _ in told if what == "out").items())),
            bytes_out=int(sums["out"]),
            bytes_in=int(sums["in"]),
            read_units=float(sums["read"]),
            write_units=float(sums["write"]),
        )

    def _ask(self, params: dict[str, Any], **_: Any) -> None:
        if self.asks:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def _sent(self, request: Any, event_name: str, **_: Any) -> None:
        line = len(f"{request.method} {request.url} HTTP/1.1\r\n")
        self._told.append(("out", _kind(event_name), line + _bytes(request.headers) + len(request.body or b"")))

    def _received(self, response_dict: Any, event_name: str, **_: Any) -> None:
        if response_dict is not None:
            size = _bytes(response_dict["headers"]) + len(response_dict["body"])
            self._told.append(("in", _kind(event_name), size))

    def _consumed(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        units = consumed_units(parsed)
        if model.name == "Query" and "ConsumedCapacity" in parsed:
            # AWS counts a consistent read of nothing as one unit, dynalite as none.
            units = max(units, 1.0)
        self._told.append(("write" if model.name in _WRITES else "read", model.name, units))


def _kind(event_name: str) -> str:
    return event_name.rpartition(".")[2]


def _bytes(headers: Any) -> int:
    told = ((str(name), str(value)) for name, value in headers.items() if str(name).lower() != _UNEVEN)
    return sum(len(name) + len(value) + len(": \r\n") for name, value in told)
