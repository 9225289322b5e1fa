"""A hook on botocore that keeps every request and its answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.cost.exchange import Exchange
from bench.units import ask_for_units

_BODY = "bench_body"


class Meter:
    """Keeps what the clients of a boto3 session ask, to be read afterwards: that costs what is measured no time."""

    def __init__(self, session: Any) -> None:
        self._kept: list[Exchange] = []
        session.events.register("before-parameter-build.dynamodb", ask_for_units)
        session.events.register("before-call", _keep_body)
        session.events.register("after-call", self._keep)

    @contextmanager
    def counting(self) -> Iterator[list[Exchange]]:
        """Yield the list of what is asked while the context is open."""
        self._kept = []
        yield self._kept

    def _keep(self, http_response: Any, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        exchange = Exchange(
            service=model.service_model.service_name,
            operation=model.name,
            asked=context[_BODY],
            answer_bytes=len(http_response.content),
            answer=parsed,
        )
        attempts = 1 + parsed["ResponseMetadata"].get("RetryAttempts", 0)
        self._kept += [exchange] * attempts


def _keep_body(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context[_BODY] = params["body"]
