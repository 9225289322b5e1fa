"""A herd: very many jobs of one queue due in the same second, over 1, 4 and 16 partitions.

A partition shares nothing with another but its queue, so each is drained by itself.
"""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence

from bench.growth.drain import QUEUE, Drained, Draining, offsets, uid_of
from bench.growth.latency import Latency
from bench.part import Figures
from dueline.model.job import Partition
from dueline.model.routing import partition_of
from local.summary import percentile

PARTITIONS = (1, 4, 16)
_POINTS = 60
# SQS holds a message for whole seconds: what is handed over in time is visible within the second after due, and a bit.
_ON_TIME_SECONDS = 1.1


def stampede(jobs: int, *, partitions: int, latency: Latency, tell: Callable[[], None]) -> Figures:
    """Drain a herd of so many jobs; return the figures of it. `tell` hears of each partition that is drained."""
    shares: list[list[int]] = [[] for _ in range(partitions)]
    for number in range(jobs):
        shares[partition_of(uid_of(number), partitions)].append(number)
    drained = []
    for number, share in enumerate(shares):
        partition = Partition(queue=QUEUE, number=number)
        drained.append(Draining(partition, latency=latency, offset=offsets(number)).run(share))
        tell()
    return {"partitions": partitions, "jobs": jobs, **of(drained, jobs=jobs)}


def of(drained: Sequence[Drained], *, jobs: int) -> Figures:
    """Return the figures of all partitions together; seconds count from due."""
    visible = array("d", sorted(second for each in drained for second in each.visible))
    requests = sum((each.requests for each in drained), Counter[str]())
    came = sum(len(each.times) for each in drained)
    return {
        "ticks": sum(each.fired for each in drained),
        "ticks_with_the_lease": sum(each.held for each in drained),
        "requests": dict(sorted(requests.items())),
        "read_units": sum(each.read_units for each in drained),
        "write_units": requests["UpdateItem"],
        "cpu_seconds": sum(each.cpu_seconds for each in drained),
        "first_sent": min(each.first for each in drained),
        "last_sent": max(each.last for each in drained),
        "lateness": {name: percentile(visible, percent) for name, percent in (("p50", 50), ("p99", 99), ("max", 100))},
        "delivered": came,
        "lost": jobs - came,
        "repeated": sum(each.times.total() for each in drained) - came,
        "early": bisect_right(visible, -1e-9),
        "over_time": _over_time(visible),
    }


def _over_time(visible: Sequence[float]) -> list[tuple[float, int]]:
    """Return how many are delivered at some seconds after due."""
    end = max(_ON_TIME_SECONDS, visible[-1])
    seconds = {0.0, _ON_TIME_SECONDS, *(end * point / _POINTS for point in range(_POINTS + 1))}
    return [(second, bisect_right(visible, second)) for second in sorted(seconds)]
