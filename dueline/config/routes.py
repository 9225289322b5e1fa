"""The HTTP API's routes, and whose each is: of a queue's producers, of its operators, or of both.

From this table come the gateway's routes, the policies of IAM, and what the function allows to who invokes it.
"""

from enum import StrEnum
from typing import NamedTuple


class Caller(StrEnum):
    """What a caller is to a queue; an alias's name begins with the value, as that of `alias_of` does.

    >>> Caller.PRODUCER.alias_of("emails")
    'q-emails'
    """

    PRODUCER = "q"
    OPERATOR = "o"

    def alias_of(self, queue: str) -> str:
        """Return the alias of the API's function by which these callers of a queue invoke it."""
        return f"{self}-{queue}"


class ApiRoute(NamedTuple):
    """The methods of a path, and who may use them."""

    methods: tuple[str, ...]
    callers: frozenset[Caller]


_PRODUCERS, _OPERATORS, _BOTH = frozenset({Caller.PRODUCER}), frozenset({Caller.OPERATOR}), frozenset(Caller)
_QUEUE = "/queues/{queue}"
_SCHEDULE = f"{_QUEUE}/schedules/{{schedule}}"
ROUTES = {
    # It has no queue: the names and settings of all.
    "/queues": ApiRoute(("GET",), _BOTH),
    _QUEUE: ApiRoute(("GET",), _BOTH),
    f"{_QUEUE}/jobs": ApiRoute(("POST", "GET", "PATCH", "DELETE"), _PRODUCERS),
    f"{_QUEUE}/jobs/{{id}}": ApiRoute(("GET", "PATCH", "DELETE"), _PRODUCERS),
    f"{_QUEUE}/uploads": ApiRoute(("POST",), _PRODUCERS),
    f"{_QUEUE}/cancellations": ApiRoute(("POST",), _PRODUCERS),
    f"{_QUEUE}/pause": ApiRoute(("POST",), _OPERATORS),
    f"{_QUEUE}/resume": ApiRoute(("POST",), _OPERATORS),
    f"{_QUEUE}/rate": ApiRoute(("PUT",), _OPERATORS),
    f"{_QUEUE}/schedules": ApiRoute(("GET",), _PRODUCERS),
    _SCHEDULE: ApiRoute(("PUT", "GET", "DELETE"), _PRODUCERS),
    f"{_SCHEDULE}/pause": ApiRoute(("POST",), _PRODUCERS),
    f"{_SCHEDULE}/resume": ApiRoute(("POST",), _PRODUCERS),
    f"{_SCHEDULE}/run": ApiRoute(("POST",), _PRODUCERS),
    f"{_SCHEDULE}/backfill": ApiRoute(("POST",), _PRODUCERS),
    f"{_SCHEDULE}/history": ApiRoute(("GET",), _PRODUCERS),
}


def requests_of(caller: Caller, queue: str) -> list[tuple[str, str]]:
    """Return the methods and paths of a caller's requests, without those of `requests_of_all`, as IAM matches them.

    What a queue's path ends with is any: there is nothing below a job, and what is below a schedule is its own.

    >>> sorted(requests_of(Caller.OPERATOR, "emails"))[1]
    ('POST', 'queues/emails/pause')
    """
    requests: dict[tuple[str, str], None] = {}
    for path, route in ROUTES.items():
        if path.startswith(_QUEUE) and caller in route.callers:
            below, parameter, _ = path.removeprefix(_QUEUE).partition("/{")
            pattern = f"queues/{queue}{below}{'/*' if parameter else ''}"
            requests |= dict.fromkeys((method, pattern) for method in route.methods)
    return list(requests)


def requests_of_all() -> list[tuple[str, str]]:
    """Return the methods and paths of requests that concern no queue."""
    return [(method, path[1:]) for path, route in ROUTES.items() if _QUEUE not in path for method in route.methods]


def aliases_for(path: str) -> list[str]:
    """Return the aliases by which a path can be requested, the producers' first; none for one without a queue.

    >>> aliases_for("/queues/emails/jobs?key=k"), aliases_for("/queues/emails/rate"), aliases_for("/queues")
    (['q-emails'], ['o-emails'], [])
    """
    _, *parts = path.partition("?")[0].split("/")
    if parts[0] != "queues" or len(parts) < 2:
        return []
    route = ROUTES.get("/".join([_QUEUE, *parts[2:3]]), ROUTES[_QUEUE])
    return [caller.alias_of(parts[1]) for caller in Caller if caller in route.callers]
