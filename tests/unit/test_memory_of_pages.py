"""How much memory a page takes whose payloads are small in their rows, and large when they are unpacked."""

import tracemalloc
from datetime import timedelta

from dueline.core.job import MAX_PAYLOAD_BYTES
from tests.builders import NOW, a_job

JOBS = 450
# Half of what a function has. All payloads at once would be 115 MB of the 450 jobs, and of a full page of 1 MB, 900 MB.
MOST_BYTES = 100 * 1024 * 1024


class _Forgetful(list):
    """What arrives is another process's to keep."""

    def __iadd__(self, _):
        return self


def test_payloads_are_unpacked_in_their_turn(system):
    """By a tick, an overview, which keeps none, and a list, which keeps those of a page."""
    for number in range(JOBS):
        system.put(a_job(payload="x" * MAX_PAYLOAD_BYTES, due=NOW + timedelta(seconds=60, milliseconds=number)))
    system.queues["emails"].deliveries = _Forgetful()
    tracemalloc.start()
    assert system.overview().scheduled == JOBS
    assert len(system.list_jobs(limit=100).jobs) == 4
    assert system.tick().dispatched == JOBS
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_BYTES
