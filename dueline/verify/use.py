"""Who else uses a deployment: checks break things, and run only where nobody else has jobs."""

from collections.abc import Sequence

from dueline.client.client import Client
from dueline.verify.sandbox import NAME, QUEUES


def others(client: Client) -> list[str]:
    """Return what shows that a deployment is no sandbox, or that another run is under way in it: nothing, if it is."""
    names = {queue.name for queue in client.queues()}
    if missing := set(QUEUES) - names:
        return [f"it has no queue {', '.join(sorted(missing))}: deploy dueline/verify/queues.yaml as {NAME}"]
    if strange := names - set(QUEUES):
        return [f"it has other queues: {', '.join(sorted(strange))}"]
    return [told for queue in QUEUES for told in _jobs_of(client, queue)]


def _jobs_of(client: Client, queue: str) -> Sequence[str]:
    overview = client.queue(queue)
    depth = overview.depth
    counts = {
        "scheduled": overview.scheduled,
        "waiting": depth.waiting,
        "in flight": depth.in_flight,
        "delayed": depth.delayed,
        "dead": overview.dead,
    }
    return [f"queue {queue} has {count} jobs {state}" for state, count in counts.items() if count]
