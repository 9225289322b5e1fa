"""Asking a deployment what ids need, for those who make the ids of many jobs beforehand."""

from dueline.client.client import Client
from dueline.client.id_terms import IdTerms
from dueline.model.job import queue_name


def id_terms(client: Client, queue: str) -> IdTerms | None:
    """Ask what the ids of a queue's jobs need, as often as the client's patience allows.

    Returns None where that is not told: by an older deployment, for a queue that takes no jobs yet, or to a caller
    without the right to ask. Raises QueueNotFound, Throttled or Unavailable.
    """
    name = queue_name(queue)
    return client._calls.ask(lambda: client._api.id_terms(name))
