"""Where a step's time goes: own time of functions, by what they are for."""

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

OURS, SERIALIZE, SIGN, SEND, PARSE, JSON, REST = (
    "ours",
    "botocore: serialize",
    "sign",
    "send: urllib3, http.client, socket",
    "botocore: parse",
    "json",
    "botocore: hooks, retries, endpoint",
)
POWERTOOLS, OTHER = "Powertools, logging", "Python's library"
# The first part of a file's path that is found here tells what its functions are for.
_GROUPS = {
    "dueline/aws/transport/signature": SIGN,
    "dueline/aws/transport/sending": SEND,
    "dueline/aws/transport/connections": SEND,
    "/dueline/": OURS,
    "/functions/": OURS,
    "botocore/serialize": SERIALIZE,
    "botocore/auth": SIGN,
    "botocore/signers": SIGN,
    "hmac.py": SIGN,
    "botocore/parsers": PARSE,
    "botocore/httpsession": SEND,
    "botocore/awsrequest": SEND,
    "urllib3": SEND,
    "http/client": SEND,
    "socket.py": SEND,
    "/email/": SEND,
    "/json/": JSON,
    "boto3/dynamodb": OURS,
    "botocore": REST,
    "boto3": REST,
    "aws_lambda_powertools": POWERTOOLS,
    "/logging/": POWERTOOLS,
}
_TOP = 12

Function = tuple[str, int, str]


def profile(run: Callable[[], object]) -> dict[str, Any]:
    """Return the shares of the time that this thread computes: by group, and of the functions with the most."""
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(run)
    return shares(pstats.Stats(profiler).stats)  # type: ignore[attr-defined]


def shares(stats: dict[Function, Any]) -> dict[str, Any]:
    """Return what cProfile found as shares of the whole; what is built in counts for whoever calls it."""
    groups, functions = defaultdict[str, float](float), defaultdict[str, float](float)
    for function, (_, _, own, _, callers) in stats.items():
        functions[_named(function)] += own
        for caller, seconds in _callers(function, own, callers):
            groups[group_of(caller[0])] += seconds
    whole = sum(groups.values()) or 1.0
    return {"groups": dict(_most_first(groups, whole)), "top": _most_first(functions, whole)[:_TOP]}


def _most_first(seconds: Mapping[str, float], whole: float) -> list[tuple[str, float]]:
    return sorted(((name, own / whole) for name, own in seconds.items()), key=lambda share: -share[1])


def _callers(function: Function, own: float, callers: dict[Function, Any]) -> Iterator[tuple[Function, float]]:
    if function[0] != "~" or not callers:
        yield function, own
        return
    for caller, (_, _, of_caller, _) in callers.items():
        yield caller, of_caller


def group_of(path: str) -> str:
    """Return what the functions of a file are for.

    >>> group_of("/site-packages/botocore/auth.py")
    'sign'
    """
    return next((group for part, group in _GROUPS.items() if part in path), OTHER)


def _named(function: Function) -> str:
    path, line, name = function
    return name if path == "~" else f"{'/'.join(path.rsplit('/', 2)[-2:])}:{line} {name}"
